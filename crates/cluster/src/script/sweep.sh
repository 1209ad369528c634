# Ends every process with the mark of a job in its environment, and the launcher's helper that started it. $mark: the mark.
found=0
for try in 1 2 3 4 5; do
  left=0
  for file in $(grep -lzxF -e "OMBX_JOB=$mark" -e "LC_OMBX_JOB=$mark" /proc/[0-9]*/environ 2>/dev/null); do
    directory=${file%/environ} pid=${directory#/proc/}
    [ "$pid" = $$ ] && continue
    parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$directory/status" 2>/dev/null)
    case $(cat "/proc/$parent/comm" 2>/dev/null) in
      hydra_pmi_proxy|orted|prted) kill -9 "$parent" 2>/dev/null;;
    esac
    kill -9 "$pid" 2>/dev/null && left=$((left+1))
  done
  [ $left = 0 ] && break
  found=$((found+left))
  sleep 0.2
done
echo swept $found
