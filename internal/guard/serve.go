package guard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"oversell/internal/phrase"
)

// Keeper carries out the duties of one role, in a guard process. Begin, End and Close are
// never called concurrently. Undo is called after the last Begin and End, and concurrently
// for different duties.
type Keeper interface {
	// Begin is called with a duty before the change that it undoes. An error keeps the program from making the change.
	Begin(ctx context.Context, id int64, duty json.RawMessage) error
	// End is called when the program has undone it.
	End(ctx context.Context, id int64)
	// Undo undoes it. It is called again until it succeeds. It returns a description of what was undone.
	Undo(ctx context.Context, id int64) (what string, err error)
	// Close is called at the end.
	Close()
}

// Roles make keepers from the program's hello, by the name of the role.
type Roles map[string]func(hello json.RawMessage) (Keeper, error)

// Serve runs a guard process and returns its exit code.
func Serve(roles Roles) int {
	ignoreSignals()
	s := &service{roles: roles, in: bufio.NewReader(os.Stdin), out: os.Stdout, patience: Patience}
	return s.run()
}

// service is a guard process.
type service struct {
	roles    Roles
	in       *bufio.Reader
	out      io.Writer
	patience time.Duration

	keeper Keeper
	duties []int64
	dir    string // for the log
}

func (s *service) run() (code int) {
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			break // an unfinished line was never answered: its change was not made
		}
		var a answer
		if err := s.obey(line); err != nil {
			a.Error = err.Error()
		}
		text, _ := json.Marshal(a)             // of a string
		_, _ = s.out.Write(append(text, '\n')) // the program may be dead by now
	}
	if s.keeper == nil {
		return 0
	}
	defer s.keeper.Close()
	return s.undoAll()
}

func (s *service) obey(line []byte) error {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), answering/2)
	defer cancel()
	switch {
	case m.Do == "hello":
		open, known := s.roles[m.Role]
		if !known {
			return fmt.Errorf("unknown role %q", m.Role)
		}
		var err error
		s.keeper, err = open(m.Body)
		return err
	case s.keeper == nil:
		return errors.New("no program said hello")
	case m.Do == "begin":
		err := s.keeper.Begin(ctx, m.ID, m.Body)
		if err == nil {
			s.duties = append(s.duties, m.ID)
		}
		return err
	case m.Do == "end":
		s.duties = slices.DeleteFunc(s.duties, func(id int64) bool { return id == m.ID })
		s.keeper.End(ctx, m.ID)
	case m.Do == "log":
		return json.Unmarshal(m.Body, &s.dir)
	}
	return nil
}

// between is the pause between two tries of an undo; trying is how long each may take.
const (
	between = 50 * time.Millisecond
	trying  = 2 * time.Second
)

// undoAll undoes the remaining duties, and reports them in a file if there is a directory for it.
func (s *service) undoAll() (code int) {
	if len(s.duties) == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	lines := make([]string, len(s.duties))
	failed := make([]bool, len(s.duties))
	var wg sync.WaitGroup
	for i, id := range s.duties {
		wg.Go(func() { lines[i], failed[i] = s.undo(ctx, id) })
	}
	wg.Wait()
	s.log(lines)
	if slices.Contains(failed, true) {
		return 1
	}
	return 0
}

func (s *service) undo(ctx context.Context, id int64) (line string, failed bool) {
	for {
		try, cancel := context.WithTimeout(ctx, trying)
		what, err := s.keeper.Undo(try, id)
		cancel()
		if err == nil {
			return what, false
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf("could not %s within %v: %v", what, s.patience, err), true
		case <-time.After(between):
		}
	}
}

// log adds lines to a file in the directory, which may be gone.
func (s *service) log(lines []string) {
	if s.dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "guard.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return
	}
	defer f.Close()
	now := time.Now().UTC().Format(time.RFC3339)
	for _, line := range lines {
		fmt.Fprintf(f, "%s the program ended without undoing this: %s\n", now, phrase.OneLine(line))
	}
}
