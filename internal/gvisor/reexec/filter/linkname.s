// Functions without bodies are allowed in a package that has a file of assembly.
