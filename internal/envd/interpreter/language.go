package interpreter

import (
	_ "embed" // the drivers
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

var (
	//go:embed driver.py
	pythonDriver string
	//go:embed driver.js
	javascriptDriver string
	//go:embed driver.sh
	bashDriver string
)

// driver is how the interpreter of a language is started and spoken to.
type driver struct {
	path          string
	args          []string
	env           map[string]string
	base64        bool // takes bare code in base64, not JSON
	interruptible bool // survives an interrupt with its state
}

// driverOf finds the interpreter of a language in the sandbox.
func driverOf(system System, language string) (driver, error) {
	switch language {
	case "python":
		for _, name := range []string{"python3", "python"} {
			if path, ok := system.Find(name); ok {
				return driver{path: path, args: []string{"-c", pythonDriver}, interruptible: true,
					env: map[string]string{"MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}}, nil
			}
		}
	case "bash":
		if path, ok := system.Find("bash"); ok {
			return driver{path: path, args: []string{"-c", bashDriver}, base64: true}, nil
		}
	case "javascript", "typescript":
		if path, ok := system.Find("node"); ok {
			return driver{path: path, args: []string{"-e", javascriptDriver, language}}, nil
		}
	}
	return driver{}, &failure{http.StatusBadRequest, fmt.Sprintf("language %q is not available in this sandbox", language)}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// withExports is a shell snippet with its variables set first. They stay set:
// a shell cannot take them back without a shell of its own.
func withExports(code snippet) (string, error) {
	var b strings.Builder
	for name, value := range code.Env {
		if !variableName.MatchString(name) {
			return "", &failure{http.StatusBadRequest, fmt.Sprintf("environment variable %q cannot be set", name)}
		}
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	b.WriteString(code.Code)
	return b.String(), nil
}
