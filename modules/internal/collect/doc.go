// Package collect keeps the end of a stream in memory and, when the end is not the whole, the whole in a file.
//
// It is what every subprocess runtime makes of subprocess.Collect. Memory is bounded by the cap, whatever the stream
// does, and trouble with the file never reaches whoever writes: the file is given up, its path is withheld, and one call
// of Config.Trouble says why.
package collect
