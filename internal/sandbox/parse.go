package sandbox

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknown stands for what only the shell will know, such as the value of $X. It
// cannot be in a command, which holds no NUL.
const unknown = "\x00"

// maxNesting bounds commands inside commands.
const maxNesting = 8

// parseCalls returns the words of every program that a bash command would run,
// as far as they can be known.
func parseCalls(shell string) ([][]string, error) { return parseNested(shell, 0) }

func parseNested(shell string, depth int) ([][]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(shell), "command")
	if err != nil {
		return nil, err
	}
	var calls [][]string
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 || err != nil {
			return err == nil
		}
		var words []string
		for _, arg := range call.Args {
			words = append(words, literal(arg))
		}
		var inner [][]string
		inner, err = unwrap(words, depth)
		calls = append(calls, inner...)
		return err == nil
	})
	return calls, err
}

// literal is the text of a word, with unknown for what expands.
func literal(word *syntax.Word) string {
	var b strings.Builder
	var walk func(parts []syntax.WordPart)
	walk = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch p := part.(type) {
			case *syntax.Lit:
				b.WriteString(unescape(p.Value))
			case *syntax.SglQuoted:
				if p.Dollar { // $'\x72m' spells what it likes
					b.WriteString(unknown)
				} else {
					b.WriteString(p.Value)
				}
			case *syntax.DblQuoted:
				walk(p.Parts)
			default:
				b.WriteString(unknown)
			}
		}
	}
	walk(word.Parts)
	text := b.String()
	if strings.ContainsAny(text, "*?[{") && len(word.Parts) == 1 {
		if _, plain := word.Parts[0].(*syntax.Lit); plain && strings.ContainsAny(text, "?[{") {
			return unknown // expands to names that are there when it runs
		}
	}
	return text
}

// unescape removes the backslashes that bash removes.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// unwrap returns a call and the calls that it makes through a wrapper.
func unwrap(words []string, depth int) ([][]string, error) {
	calls := [][]string{words}
	if depth >= maxNesting {
		return append(calls, []string{unknown}), nil
	}
	name, args := path.Base(words[0]), words[1:]
	switch name {
	case "bash", "sh", "dash", "zsh", "ash", "eval":
		script, found := scriptOf(name, args)
		if !found {
			return calls, nil
		}
		if strings.Contains(script, unknown) {
			return append(calls, []string{unknown}), nil
		}
		inner, err := parseNested(script, depth+1)
		return append(calls, inner...), err
	case "sudo", "env", "nohup", "nice", "ionice", "timeout", "time", "xargs", "exec", "command", "builtin", "stdbuf", "setsid", "doas", "watch", "find":
		if rest := wrapped(name, args); len(rest) > 0 {
			inner, err := unwrap(rest, depth+1)
			return append(calls, inner...), err
		}
	}
	return calls, nil
}

// scriptOf finds the text that a shell is told to run.
func scriptOf(name string, args []string) (string, bool) {
	if name == "eval" {
		return strings.Join(args, " "), len(args) > 0
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c") {
			if i+1 < len(args) {
				return args[i+1], true
			}
			return unknown, true
		}
		if !strings.HasPrefix(arg, "-") && arg != "-" {
			break
		}
	}
	return "", false
}

// wrapped finds the command that a wrapper runs: after its own options and
// their values, or after find's -exec.
func wrapped(name string, args []string) []string {
	if name == "find" {
		for i, arg := range args {
			if arg == "-exec" || arg == "-execdir" || arg == "-ok" {
				return args[i+1:]
			}
		}
		return nil
	}
	valued := map[string]string{
		"sudo": "-u-g-h-p-C-T-U-D-R", "nice": "-n", "ionice": "-c-n-p", "timeout": "-k-s", "xargs": "-n-P-I-L-d-a-s-E", "env": "-u-C-S",
		"stdbuf": "-i-o-e", "watch": "-n", "doas": "-u-C", "exec": "-a",
	}[name]
	skip := 0
	if name == "timeout" {
		skip = 1 // the duration
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case strings.HasPrefix(arg, "-"):
			if len(arg) == 2 && strings.Contains(valued, arg) {
				i++
			}
		case (name == "env" || name == "sudo") && strings.Contains(arg, "="):
		case skip > 0:
			skip--
		default:
			return args[i:]
		}
	}
	return nil
}
