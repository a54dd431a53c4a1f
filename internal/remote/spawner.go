package remote

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"oversell/internal/child"
	"oversell/internal/errclass"
	"oversell/internal/phrase"
	"oversell/internal/printable"
)

// spawner makes processes in advance.
type spawner struct {
	stage *Stage
	ready chan made
}

type made struct {
	process *Process
	err     error
}

// program is a started program: the template of others, or a process itself.
type program struct {
	child   *child.Process
	control *control
	stdin   *os.File
	input   int64 // the inode of its end
	stdout  *os.File
	stderr  child.Tail
}

// work makes processes until the stage is closed. After an error it returns that error every time, without starting the
// program again.
func (b *spawner) work() {
	var template *program
	defer func() {
		template.end()
		for {
			select {
			case m := <-b.ready:
				m.process.Kill()
			default:
				return
			}
		}
	}()
	var failed error
	for {
		m := made{err: failed}
		if failed == nil {
			m, template = b.make(template)
			failed = m.err
		}
		select {
		case b.ready <- m:
		case <-b.stage.over:
			m.process.Kill()
			return
		}
	}
}

// make makes one process, and returns the template for others if there is one.
func (b *spawner) make(template *program) (made, *program) {
	s := b.stage
	if template == nil {
		p, err := s.start()
		if err != nil {
			return made{err: err}, nil
		}
		if !p.control.alone {
			return s.warmed(s.itself(p)), nil
		}
		template = p
	}
	p, err := s.fork(template)
	if err != nil {
		return made{err: err}, template
	}
	return s.warmed(p), template
}

// warmed returns a process that is ready for use.
func (s *Stage) warmed(p *Process) made {
	if s.config.Warm == nil {
		return made{process: p}
	}
	if err := s.config.Warm(p); err != nil {
		p.Kill()
		if errors.Is(err, errStarts) {
			return made{err: err}
		}
		return made{err: errclass.Environmentf("start %s: %w", s.config.Command[0], err)}
	}
	return made{process: p}
}

// start starts the program, and waits until it reads its input.
func (s *Stage) start() (*program, error) {
	p := &program{}
	if err := p.launch(s); err != nil {
		return nil, errclass.Environmentf("start %s: %w", s.config.Command[0], err)
	}
	if err := p.await(s); err != nil {
		p.end()
		return nil, errclass.Environmentf("start %s: %w", s.config.Command[0], err)
	}
	return p, nil
}

// launch starts the program.
func (p *program) launch(s *Stage) error {
	stdin, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	from, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, to.Close())
	}
	defer stdout.Close()
	p.stdin, p.stdout = to, from
	if p.input, err = inode(stdin); err == nil {
		cmd := exec.Command(s.config.Command[0], s.config.Command[1:]...)
		cmd.Dir, cmd.Env = s.config.Dir, s.environment(p.input)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &p.stderr
		p.child, err = child.Start(cmd)
	}
	if err != nil {
		return errors.Join(err, to.Close(), from.Close())
	}
	return nil
}

// await waits until the program reads its input. A program that another one has started, such as a shell script, has
// another process id than the child.
func (p *program) await(s *Stage) error {
	defer s.unborn(p.input)
	printed := make(chan error, 1)
	limit := time.NewTimer(s.config.Start)
	defer limit.Stop()
	go func() { printed <- p.early() }()
	select {
	case p.control = <-s.birth(p.input):
		err := p.stdout.SetReadDeadline(time.Now()) // early ends
		return errors.Join(err, <-printed, p.stdout.SetReadDeadline(time.Time{}))
	case err := <-printed:
		if err != nil {
			return err
		}
		select {
		case <-p.child.Exited():
			return p.ended()
		case <-limit.C:
			return errors.New("it closed its output")
		}
	case <-p.child.Exited():
		return p.ended()
	case <-s.over:
		return net.ErrClosed
	case <-limit.C:
		return fmt.Errorf("it did not begin to read its input within %v: it must be one process that loads the shared C library, and read its input by read(2)", s.config.Start)
	}
}

// early returns an error if the program prints before its first request.
func (p *program) early() error {
	b := make([]byte, 200)
	if n, _ := p.stdout.Read(b); n > 0 {
		return fmt.Errorf("it printed a line before it was asked: %s", printable.Word(strings.TrimSpace(string(b[:n]))))
	}
	return nil
}

// ended says how the program ended.
func (p *program) ended() error {
	how := "it ended"
	if err := p.child.Err(); err != nil {
		how += " with " + err.Error()
	}
	if last := p.lastLine(); last != "" {
		how += ": " + last
	}
	return errors.New(how)
}

// lastLine returns the last line on stderr.
func (p *program) lastLine() (last string) {
	for line := range strings.Lines(p.stderr.String()) {
		if line = phrase.OneLine(line); line != "" {
			last = printable.Text(line)
		}
	}
	return last
}

// end kills the program. What was forked from it dies with it.
func (p *program) end() {
	if p == nil {
		return
	}
	if p.control != nil {
		_ = p.control.conn.Close()
	}
	p.child.Kill()
	_ = p.stdin.Close()
	_ = p.stdout.Close()
}

// fork makes a process of a template.
func (s *Stage) fork(template *program) (*Process, error) {
	s.mu.Lock()
	s.number++
	p := newProcess(s, template)
	number := s.number
	s.awaited[number] = p
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.awaited, number)
		s.mu.Unlock()
	}()
	err := template.control.tell(number)
	limit := time.NewTimer(s.config.Start)
	defer limit.Stop()
	for range 2 { // its control connection, and its lines
		if err != nil {
			break
		}
		select {
		case <-p.here:
		case <-template.child.Exited():
			err = template.ended()
		case <-s.over:
			err = net.ErrClosed
		case <-limit.C:
			err = fmt.Errorf("no process was forked within %v", s.config.Start)
		}
	}
	if err != nil {
		p.Kill()
		return nil, errclass.Environmentf("fork %s: %w", s.config.Command[0], err)
	}
	return p, nil
}

// itself returns a program that is stepped itself.
func (s *Stage) itself(from *program) *Process {
	p := newProcess(s, from)
	p.own = true
	p.born(from.control)
	p.lines = from.stdin
	p.readLines(bufio.NewReader(from.stdout))
	if err := from.control.tell(0); err != nil {
		p.fail(err)
	}
	return p
}
