package databasetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oversell/internal/child"
	"oversell/internal/freeport"
)

// errNotInstalled means that the machine has no such server.
var errNotInstalled = errors.New("is not installed")

const (
	// startAttempts is how many ports are tried, because other programs may take one.
	startAttempts = 3
	// startTimeout is how long a server may take to answer; a second is usual.
	startTimeout = 30 * time.Second
	// testPassword is the password of the test accounts.
	testPassword = "correct-horse"
)

// server is one database server started by the tests.
type server struct {
	dsn, admin string
	child      *child.Process
	dir        string
}

func (s *server) stop() {
	stopChild(s.child)
	_ = os.RemoveAll(s.dir) // the rest stays in the temporary directory
}

// recipe describes how to start one kind of server.
type recipe struct {
	// account is the account that runs the server if the test runs as root, which servers refuse.
	account []string
	// install initializes an empty data directory.
	install func(ctx context.Context, as account, dir string) error
	// command returns the command that starts a server on a port.
	command func(dir string, port int) (binary string, args []string, err error)
	// admin returns the DSN of the account created by the installation, and checks that the server there has its
	// data in dir.
	admin func(ctx context.Context, dir string, port int) (dsn string, err error)
	// prepare creates the account of the tests and returns its DSN.
	prepare func(ctx context.Context, admin string, port int) (dsn string, err error)
}

func startServer(kind string) (*server, error) {
	r, ok := recipes[kind]
	if !ok {
		return nil, fmt.Errorf("no database of the kind %q", kind)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	as, err := lookUp(r.account)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", kind, err)
	}
	dir, err := os.MkdirTemp("", "oversell-"+kind+"-")
	if err == nil && as.other {
		err = os.Chown(dir, as.uid, as.gid)
	}
	if err == nil {
		err = r.install(ctx, as, dir)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start %s: %w", kind, err)
	}
	for attempt := 1; ; attempt++ {
		s, err := r.start(ctx, as, dir)
		if err == nil {
			return s, nil
		}
		if attempt == startAttempts || ctx.Err() != nil {
			_ = os.RemoveAll(dir)
			return nil, fmt.Errorf("start %s: %w", kind, err)
		}
	}
}

// start starts the server once and waits until it, and no other, answers.
func (r recipe) start(ctx context.Context, as account, dir string) (*server, error) {
	port, err := freeport.One()
	if err != nil {
		return nil, err
	}
	binary, args, err := r.command(dir, port)
	if err != nil {
		return nil, err
	}
	c, err := startChild(as, dir, binary, args...)
	if err != nil {
		return nil, err
	}
	s := &server{child: c, dir: dir}
	if s.admin, err = await(ctx, c, func() (string, error) { return r.admin(ctx, dir, port) }); err == nil {
		s.dsn, err = r.prepare(ctx, s.admin, port)
	}
	if err != nil {
		stopChild(c)
		return nil, err
	}
	return s, nil
}

// find returns the first of these programs that is on the PATH or in one of the directories, the last of which is the
// newest.
func find(directories string, names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.EvalSymlinks(path)
		}
		found, err := filepath.Glob(filepath.Join(directories, name))
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return slices.Max(found), nil
		}
	}
	return "", fmt.Errorf("%s %w", strings.Join(names, " or "), errNotInstalled)
}

// account is an account that a server runs under.
type account struct {
	other    bool // different from the current account
	uid, gid int
}

// lookUp returns the first of these accounts. Unless the test runs as root, it returns the current one.
func lookUp(names []string) (account, error) {
	if os.Getuid() != 0 {
		return account{}, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		a := account{other: true}
		_, err = fmt.Sscan(u.Uid+" "+u.Gid, &a.uid, &a.gid)
		return a, err
	}
	return account{}, fmt.Errorf("root cannot run it, and none of the accounts %v exists", names)
}

// run runs a program until it ends.
func run(ctx context.Context, as account, dir, binary string, args ...string) error {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	runAs(cmd, as)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := child.Run(cmd, time.Second); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(binary), err, lastLines(out.String()))
	}
	return nil
}
