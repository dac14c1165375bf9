package forge

// ParseHook is what a delivery says.
var ParseHook = parseHook
