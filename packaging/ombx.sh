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
    intel) echo "Intel MPI, whose library is called as that of MPICH" ;;
    openmpi) echo "Open MPI" ;;
    abi) echo "the standard ABI of MPI 5" ;;
    no-mpi) echo "no MPI" ;;
    *) echo "$1" ;;
    esac
}

# Prints the MPI of a launcher. The names of some launchers say it; the others are asked for their version.
mpi_of() {
    program=$(readlink -f "$1")
    case ${program##*/} in
    *.mpich) echo mpich ;;
    orterun | prterun | *.openmpi) echo openmpi ;;
    *)
        case $(timeout 10 "$1" --version 2>&1 </dev/null) in
        *"Intel(R) MPI"*) echo intel ;;
        *HYDRA* | *Hydra* | *MPICH*) echo mpich ;;
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

# Prints the directories of the libraries of all launchers in PATH, with a colon behind each.
libraries_in_path() {
    rest=$PATH:
    while [ -n "$rest" ]; do
        for launcher in mpiexec mpirun; do
            if [ -x "${rest%%:*}/$launcher" ]; then
                directory=$(libraries_of "${rest%%:*}/$launcher")
                printf '%s' "${directory:+$directory:}"
                break
            fi
        done
        rest=${rest#*:}
    done
}

# Says whether a build starts, with MPI's library of the directory $libraries if it is not empty.
runs() {
    "$builds/$1/ombx" --version >/dev/null 2>&1 || return 1
    if [ -z "$libraries" ]; then
        return
    fi
    # The loader prints `NAME => PATH (ADDRESS)` for each library instead of starting the program.
    while read -r object arrow path; do
        # The path may have blanks.
        path=${path% (*}
        case $object,$arrow,$path in
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

# Prints the first of the named builds whose libraries are found. The build without MPI is none of them.
usable() {
    for name; do
        if [ "$name" != no-mpi ] && has "$name" && runs "$name"; then
            echo "$name"
            return
        fi
    done
}

# Sets $chosen to the first of the named builds whose libraries are found by the loader, or in a directory of $beside.
choose() {
    chosen=$(usable "$@")
    earlier=${LD_LIBRARY_PATH-}
    rest=$beside
    while [ -z "$chosen" ] && [ -n "$rest" ]; do
        export LD_LIBRARY_PATH="${rest%%:*}${earlier:+:$earlier}"
        chosen=$(usable "$@")
        rest=${rest#*:}
        if [ -z "$chosen" ]; then
            unset LD_LIBRARY_PATH
            if [ -n "$earlier" ]; then
                export LD_LIBRARY_PATH="$earlier"
            fi
        fi
    done
}

# Prints the builds that an MPI can run, the best first.
builds_of() {
    case $1 in
    mpich | intel) echo mpich mpich-debian abi ;;
    openmpi) echo openmpi abi ;;
    *) echo "$1" ;;
    esac
}

# Takes --mpi out of the words, and finds requests for help. The word after --launcher-arg belongs to the launcher.
wanted='' given='' state=free help=${_OMBX_COMPLETE-}
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
    free,-h | free,--help) help=yes ;;
    free,--launcher-arg) state=launcher ;;
    free,--) state=rest ;;
    launcher,*) state=free ;;
    esac
    set -- "$@" "$word"
done
called=${0##*/}
# Fedora and RHEL put this before the names.
called=${called#mpitests-}
is_rank=''
if [ -n "${OMPI_COMM_WORLD_RANK-}" ]; then
    is_rank=openmpi
elif [ -n "${PMI_RANK-}" ] && [ -z "${SLURM_STEP_ID-}" ]; then
    is_rank=mpich
fi
# What starts no MPI does not depend on the launcher, which takes long to ask. These commands do the same in each build, or need the
# benchmarks and names of programs that each build with MPI has.
if [ "$called$given$is_rank" = ombx ]; then
    case $help,${1-} in
    ,report | ,plot | ,compare | ,history)
        if has no-mpi; then
            exec "$builds/no-mpi/ombx" "$@"
        fi
        quick=yes
        ;;
    ?*,* | ,list | ,help | ,show | ,completions | ,) quick=yes ;;
    *) quick='' ;;
    esac
    for name in ${quick:+mpich mpich-debian openmpi abi}; do
        if has "$name"; then
            # A trial start takes as long as the command itself. The loader ends with 127 if it finds no library.
            { said=$("$builds/$name/ombx" "$@" 2>&1 >&3); } 3>&1
            code=$?
            if [ "$code" != 127 ]; then
                printf '%s' "${said:+$said
}" >&2
                exit "$code"
            fi
        fi
    done
fi
if [ -n "$given" ] && ! has "$wanted"; then
    echo "ombx: there is no build '$wanted': --mpi takes one of:$names" >&2
    exit 2
fi

# The choice is printed where it matters: by commands that measure, unless the user or a launcher has made it.
measures=
case "$called ${1-}" in
osu_* | IMB-* | *" run" | *" congestion" | *" links" | *" ab" | *" osu" | *" imb" | *" model" | *" doctor" | *" check") measures=yes ;;
esac
chosen=$wanted why='' libraries='' beside='' loaded=$is_rank
if [ -n "$wanted" ] && ! runs "$wanted"; then
    beside=$(libraries_in_path)
    choose "$wanted"
    if [ -z "$chosen" ]; then
        lacks=$("$builds/$wanted/ombx" --version 2>&1)
        echo "ombx: the build with $(full_name "$wanted") does not start: ${lacks##*ombx: }. Load the module of this MPI, or install it" >&2
        exit 6
    fi
elif [ -z "$wanted" ]; then
    if [ -n "$is_rank" ]; then
        measures='' beside=$(libraries_in_path)
    else
        launcher=$(command -v mpiexec || command -v mpirun || true)
        if [ -n "$launcher" ]; then
            loaded=$(mpi_of "$launcher") libraries=$(libraries_of "$launcher")
            beside=${libraries:+$libraries:}
        fi
        case $launcher,$loaded in
        ,*) why="no mpiexec in PATH" ;;
        *,) why="$launcher is neither of MPICH nor of Open MPI" ;;
        *) why="$launcher is of $(full_name "$loaded")" ;;
        esac
    fi
    if [ -n "$loaded" ]; then
        # shellcheck disable=SC2046 # the names are words
        choose $(builds_of "$loaded")
        libraries=
    fi
    if [ -z "$chosen" ] && [ -n "$is_rank" ]; then
        # A build for another MPI would be rank 0 of 1. The loader says what this one lacks.
        chosen=$loaded
    fi
    if [ -z "$chosen" ]; then
        # shellcheck disable=SC2086
        chosen=$(usable mpich mpich-debian openmpi abi $names)
    fi
    if [ -z "$chosen" ]; then
        with_mpi=$names
        if has no-mpi; then
            with_mpi=${names%% no-mpi*}${names##* no-mpi}
        fi
        why="$why; there are builds for:$with_mpi, but the library of none is found"
        case "$measures $* " in
        yes*" sockets"* | yes*--connect* | yes*--fabric* | yes*" --help "* | yes*" -h "*) ;;
        "yes model "* | "yes osu " | "yes imb ") ;;
        yes*) measures=refused ;;
        esac
        if [ "$measures" = refused ] || ! has no-mpi; then
            echo "ombx: $why. Load the module of an MPI, or install one: pip install mpich" >&2
            exit 6
        fi
        chosen=no-mpi
    fi
    # Of ranks that another launcher has started, the first says it.
    if [ -n "$measures" ] && [ "$names" != " $chosen" ] && [ "${PMIX_RANK:-${SLURM_PROCID:-0}}" = 0 ]; then
        echo "ombx: build with $(full_name "$chosen"): $why (--mpi chooses one of:$names)" >&2
    fi
fi

case $called in
osu_*) exec "$builds/$chosen/ombx" osu "$called" "$@" ;;
IMB-*) exec "$builds/$chosen/ombx" imb "$called" "$@" ;;
*) exec "$builds/$chosen/ombx" "$@" ;;
esac
