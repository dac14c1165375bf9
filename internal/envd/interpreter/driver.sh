# Runs snippets in one shell. Code comes in base64, one line each, on descriptor
# 4; the end of each is told on descriptor 3, and so is the shell's own end.
exec {__words}>&3 {__code}<&4 3>&- 4<&-
__failed() {
  [ "$1" = 0 ] || printf '{"type":"error","name":"CommandFailed","value":"exit status %s","traceback":"exit status %s"}\n' "$1" "$1" >&"$__words"
}
trap '__failed $?; printf "{\"type\":\"bye\"}\n" >&"$__words"' EXIT
while IFS= read -r __line <&"$__code"; do
  eval "$(base64 -d <<<"$__line")" </dev/null
  __failed $?
  printf '{"type":"end"}\n' >&"$__words"
done
trap - EXIT
