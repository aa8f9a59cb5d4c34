package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"dsh/internal/testkit"
)

func init() { programs["at-terminal"] = atTerminal }

// atTerminal is the program `at-terminal ANSWER COMMAND...`: the command has a terminal of its own, at which a person types
// the answer to each question. What was shown there comes on standard error when the command has ended.
func atTerminal() {
	if err := sitAt(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "at-terminal:", err)
		os.Exit(1)
	}
}

func sitAt(answer string, argv []string) error {
	screen, tty, err := testkit.OpenTerminal()
	if err != nil {
		return err
	}
	defer screen.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{tty}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	err = cmd.Start()
	tty.Close()
	if err != nil {
		return err
	}
	shown := make(chan string)
	go func() { shown <- answerAll(screen, answer) }()
	err = cmd.Wait()
	fmt.Fprint(os.Stderr, <-shown)
	return err
}

// answerAll answers every question until the terminal's last process has gone, and returns what was shown.
func answerAll(screen *os.File, answer string) string {
	var shown strings.Builder
	answered := 0
	for buf := make([]byte, 4096); ; {
		n, err := screen.Read(buf)
		shown.Write(buf[:n])
		for ; answered < strings.Count(shown.String(), "[y/N] "); answered++ {
			fmt.Fprintln(screen, answer)
		}
		if err != nil { // EIO, see pty(7)
			return shown.String()
		}
	}
}
