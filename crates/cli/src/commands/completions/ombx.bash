# Completions of ombx for bash: source <(ombx completions bash)
_ombx() {
    COMPREPLY=()
    mapfile -t COMPREPLY < <(
        @ASKED_BY@=bash _CLAP_COMPLETE_INDEX=$COMP_CWORD @OMBX@ -- "${COMP_WORDS[@]}" 2>/dev/null
    )
    # No blank follows what is only the beginning of a word; names of files are quoted where needed.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:./_] ]]; then
        compopt -o nospace
    fi
    if [[ ${COMPREPLY[*]} == *[/\ ]* ]]; then
        compopt -o filenames
    fi
}
complete -o nosort -F _ombx ombx
