#!/bin/sh
# Starts the build of ombx for the MPI that is loaded. `--mpi NAME` chooses another one.
#
# The loaded MPI is the one whose launcher started this process. Without a launcher it is the one whose mpiexec or mpirun comes
# first in PATH. Links to this file with the name of an OSU benchmark or of a program of IMB start that program.
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
    openmpi) echo "Open MPI" ;;
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
        *HYDRA* | *Hydra* | *MPICH*) echo mpich ;;
        *"Open MPI"* | *OpenRTE* | *PRRTE* | *prterun*) echo openmpi ;;
        esac
        ;;
    esac
}

# Prints the first build whose libraries are found.
usable() {
    for name in $names; do
        if "$builds/$name/ombx" --version >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
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
    echo "ombx: --mpi takes one of:$names" >&2
    exit 2
fi

called=${0##*/}
# The choice is printed where it matters: by commands that measure, unless the user or a launcher has made it.
measures=
case "$called ${1-}" in
osu_* | IMB-* | *" run" | *" links" | *" ab" | *" osu" | *" imb" | *" model" | *" doctor" | *" check") measures=yes ;;
esac
chosen=$wanted why=''
if [ -z "$chosen" ]; then
    if [ -n "${OMPI_COMM_WORLD_RANK-}" ]; then
        loaded=openmpi measures=
    elif [ -n "${PMI_RANK-}" ] && [ -z "${SLURM_STEP_ID-}" ]; then
        loaded=mpich measures=
    else
        launcher=$(command -v mpiexec || command -v mpirun || true)
        loaded=
        if [ -n "$launcher" ]; then
            loaded=$(mpi_of "$launcher")
        fi
        case $launcher,$loaded in
        ,*) why="no mpiexec in PATH" ;;
        *,) why="$launcher is neither of MPICH nor of Open MPI" ;;
        *) why="$launcher is of $(full_name "$loaded")" ;;
        esac
    fi
    if [ -n "$loaded" ] && has "$loaded"; then
        chosen=$loaded
    else
        chosen=$(usable)
        if [ -z "$chosen" ]; then
            echo "ombx: none of these MPI libraries is found:$names. Load the module of one of them" >&2
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
