// Command squad is the whole of Agent Squad in one binary.
package main

func main() {}
