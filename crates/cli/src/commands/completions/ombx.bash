# bash takes = and : for words of their own. They are joined again, and what is in the line already is no part of an answer.
_ombx() {
    local words=() at piece=${COMP_WORDS[COMP_CWORD]}
    for ((at = 0; at <= COMP_CWORD; at++)); do
        if [[ $at -gt 1 && (${COMP_WORDS[at]} =~ ^[=:]+$ || ${COMP_WORDS[at - 1]} =~ ^[=:]+$) ]]; then
            words[-1]+=${COMP_WORDS[at]}
        else
            words+=("${COMP_WORDS[at]}")
        fi
    done
    if [[ $piece =~ ^[=:]+$ ]]; then
        piece=
    fi
    local current=$2 before=${words[-1]%"$piece"}
    if [[ -n $before ]]; then
        current=$before$piece
    fi
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    _clap_complete_ombx "$1" "$current" "$3"
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    # Names of files are quoted where needed.
    if [[ ${COMPREPLY[*]} == *[/\ ]* ]]; then
        compopt -o filenames
    fi
}
complete -o nospace -o nosort -F _ombx ombx
