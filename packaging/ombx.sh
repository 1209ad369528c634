#!/bin/sh
# Starts the build of ombx for the MPI that is loaded. `--mpi NAME` chooses another one.
#
# The loaded MPI is the one whose launcher started this process. Without a launcher it is the one whose mpiexec or mpirun comes
# first in PATH. An MPI may have several builds, by the name of its library: the first whose libraries are found is started.
# Links to this file with the name of an OSU benchmark or of a program of IMB start that program.
set -u

self=$(readlink -f "$0")
case $self in
*/libexec/*) builds=${self%/libexec/*}/libexec/ombx ;;
*) builds=${self%/bin/*}/libexec/ombx ;;
esac

names=
for build in "$builds"/*/ombx; do
    if [ -x "$build" ]; then
        name=${build%/ombx}
        names="$names ${name##*/}"
    fi
done
if [ -z "$names" ]; then
    echo "ombx: no build of ombx in $builds. Install ombx again" >&2
    exit 6
fi

has() {
    case "$names " in
    *" $1 "*) [ -n "$1" ] ;;
    *) return 1 ;;
    esac
}

full_name() {
    case $1 in
    mpich) echo MPICH ;;
    mpich-debian) echo "MPICH of Debian" ;;
    openmpi) echo "Open MPI" ;;
    abi) echo "the standard ABI of MPI 5" ;;
    *) echo "$1" ;;
    esac
}

# Prints the MPI of a launcher. The names of most launchers say it; the others are asked for their version.
mpi_of() {
    program=$(readlink -f "$1")
    case ${program##*/} in
    mpiexec.hydra | *.mpich) echo mpich ;;
    orterun | prterun | *.openmpi) echo openmpi ;;
    *)
        case $(timeout 10 "$1" --version 2>&1 </dev/null) in
        *HYDRA* | *Hydra* | *MPICH* | *"Intel(R) MPI"*) echo mpich ;;
        *"Open MPI"* | *OpenRTE* | *PRRTE* | *prterun*) echo openmpi ;;
        esac
        ;;
    esac
}

# Prints the directory of the libraries of a launcher, if it is beside it: PREFIX/lib for PREFIX/bin/mpiexec.
libraries_of() {
    program=$(readlink -f "$1")
    for directory in lib lib64 lib/release; do
        directory=${program%/bin/*}/$directory
        for library in libmpi.so.12 libmpich.so.12 libmpi.so.40 libmpi_abi.so.1; do
            if [ -e "$directory/$library" ]; then
                echo "$directory"
                return
            fi
        done
    done
}

# Says whether a build starts, with MPI's library of the directory $libraries if the launcher has one.
runs() {
    "$builds/$1/ombx" --version >/dev/null 2>&1 || return 1
    if [ -z "$libraries" ]; then
        return
    fi
    # The loader prints `NAME => PATH (ADDRESS)` for each library instead of starting the program.
    while read -r object arrow path rest; do
        case $object,$arrow,$path,$rest in
        libmpi*,'=>',/*)
            if ! [ "$path" -ef "$libraries/$object" ]; then
                return 1
            fi
            ;;
        esac
    done <<EOF
$(LD_TRACE_LOADED_OBJECTS=1 "$builds/$1/ombx")
EOF
}

# Prints the first of the named builds whose libraries are found.
usable() {
    for name; do
        if has "$name" && runs "$name"; then
            echo "$name"
            return
        fi
    done
}

# Prints the builds that an MPI can run, the best first.
builds_of() {
    case $1 in
    mpich) echo mpich mpich-debian abi ;;
    openmpi) echo openmpi abi ;;
    *) echo "$1" ;;
    esac
}

# Takes --mpi out of the words. The word after --launcher-arg belongs to the launcher.
wanted='' given='' state=free
for word; do
    shift
    case $state,$word in
    name,*)
        wanted=$word state=free
        continue
        ;;
    free,--mpi)
        given=yes state=name
        continue
        ;;
    free,--mpi=*)
        wanted=${word#--mpi=} given=yes
        continue
        ;;
    free,--launcher-arg) state=launcher ;;
    free,--) state=rest ;;
    launcher,*) state=free ;;
    esac
    set -- "$@" "$word"
done
if [ -n "$given" ] && ! has "$wanted"; then
    echo "ombx: there is no build '$wanted': --mpi takes one of:$names" >&2
    exit 2
fi

called=${0##*/}
# The choice is printed where it matters: by commands that measure, unless the user or a launcher has made it.
measures=
case "$called ${1-}" in
osu_* | IMB-* | *" run" | *" congestion" | *" links" | *" ab" | *" osu" | *" imb" | *" model" | *" doctor" | *" check") measures=yes ;;
esac
chosen=$wanted why='' libraries='' is_rank=''
if [ -z "$chosen" ]; then
    if [ -n "${OMPI_COMM_WORLD_RANK-}" ]; then
        loaded=openmpi measures='' is_rank=yes why="Open MPI's launcher started this process"
    elif [ -n "${PMI_RANK-}" ] && [ -z "${SLURM_STEP_ID-}" ]; then
        loaded=mpich measures='' is_rank=yes why="a launcher of MPICH or a relative started this process"
    else
        launcher=$(command -v mpiexec || command -v mpirun || true)
        loaded=
        if [ -n "$launcher" ]; then
            loaded=$(mpi_of "$launcher") libraries=$(libraries_of "$launcher")
        fi
        case $launcher,$loaded in
        ,*) why="no mpiexec in PATH" ;;
        *,) why="$launcher is neither of MPICH nor of Open MPI" ;;
        *) why="$launcher is of $(full_name "$loaded")" ;;
        esac
    fi
    if [ -n "$loaded" ]; then
        # shellcheck disable=SC2046 # the names are words
        chosen=$(usable $(builds_of "$loaded"))
        if [ -z "$chosen" ] && [ -n "$libraries" ]; then
            # The library is outside of the loader's directories.
            earlier=${LD_LIBRARY_PATH-}
            export LD_LIBRARY_PATH="$libraries${earlier:+:$earlier}"
            # shellcheck disable=SC2046
            chosen=$(usable $(builds_of "$loaded"))
            if [ -z "$chosen" ]; then
                LD_LIBRARY_PATH=$earlier
            fi
        fi
        libraries=
    fi
    if [ -z "$chosen" ] && [ -n "$is_rank" ]; then
        # A build for another MPI would be rank 0 of 1. The loader says what this one lacks.
        chosen=$loaded
    fi
    if [ -z "$chosen" ]; then
        # shellcheck disable=SC2086
        chosen=$(usable mpich mpich-debian openmpi abi $names)
        if [ -z "$chosen" ]; then
            echo "ombx: $why; there are builds for:$names, but the library of none is found. Load the module of an MPI, or install one" >&2
            exit 6
        fi
    fi
    if [ -n "$measures" ] && [ "$names" != " $chosen" ]; then
        echo "ombx: build with $(full_name "$chosen"): $why (--mpi chooses one of:$names)" >&2
    fi
fi

case $called in
osu_*) exec "$builds/$chosen/ombx" osu "$called" "$@" ;;
IMB-*) exec "$builds/$chosen/ombx" imb "$called" "$@" ;;
*) exec "$builds/$chosen/ombx" "$@" ;;
esac
