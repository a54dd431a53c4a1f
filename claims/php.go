package claims

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"oversell/clock"
	"oversell/internal/child"
	"oversell/internal/workdir"
	"oversell/server"
)

//go:embed pconnect.php
var pconnect []byte

// phpAnswer is what became of phpredis' connections from one request to the next.
type phpAnswer struct {
	Version  string // of the extension
	Closed   bool   // pconnect(), close(): the next request has the same connection
	Dropped  bool   // pconnect() without close(): the same
	Database bool   // which still has the database that was selected
	Plain    bool   // connect(), close(): the same connection
}

// phpTime is how long PHP has for that.
const phpTime = 10 * time.Second

// phpReuse asks phpredis what becomes of persistent connections, by requests to one
// process of PHP's own web server, or says why that cannot be done here.
func phpReuse(ctx context.Context, t *server.Target) (a phpAnswer, why string, err error) {
	if t.Kind == server.Address {
		return a, "it is not measured on servers that run already", nil
	}
	php, err := exec.LookPath("php")
	if err != nil {
		return a, "there is no php on this machine (Debian: php-cli and php-redis)", nil
	}
	ctx, cancel := context.WithTimeout(ctx, phpTime)
	defer cancel()
	s, err := startPHP(ctx, php, t.Addrs[0])
	if err != nil {
		return a, "", err
	}
	defer s.stop()
	var said [6]phpRequest
	for i, path := range []string{"persistent/close", "persistent/close", "persistent/leave", "persistent/leave", "plain/close", "plain/close"} {
		if said[i], err = s.ask(ctx, path); err != nil {
			return a, "", err
		}
		if said[i].Error != "" {
			return a, said[i].Error, nil
		}
	}
	return phpAnswer{
		Version: said[0].Version,
		Closed:  said[0].ID == said[1].ID,
		Dropped: said[2].ID == said[3].ID, Database: said[3].Selected,
		Plain: said[4].ID == said[5].ID,
	}, "", nil
}

// phpServer is a web server of PHP that answers one request at a time, in one process.
type phpServer struct {
	process *child.Process
	dir     *workdir.Dir
	url     string
}

// phpRequest is what pconnect.php answers.
type phpRequest struct {
	Error    string `json:"error"`
	Version  string `json:"version"`
	ID       int64  `json:"id"`
	Selected bool   `json:"selected"`
}

// startPHP starts the server and waits until it answers.
func startPHP(ctx context.Context, php, redis string) (s *phpServer, err error) {
	host, port, err := net.SplitHostPort(redis)
	if err != nil {
		return nil, err
	}
	s = &phpServer{}
	if s.dir, err = workdir.New(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	script := filepath.Join(s.dir.Path, "pconnect.php")
	if err := os.WriteFile(script, pconnect, 0o666); err != nil {
		return s, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		return s, err
	}
	s.url = "http://" + addr + "/"
	cmd := exec.Command(php, "-S", addr, script)
	cmd.Env = append(os.Environ(), "REDIS_HOST="+host, "REDIS_PORT="+port, "PHP_CLI_SERVER_WORKERS=")
	if s.process, err = child.Start(cmd); err != nil {
		return s, fmt.Errorf("start php: %w", err)
	}
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return s, c.Close()
		}
		if err := (clock.Real{}).Sleep(ctx, shortWait); err != nil {
			return s, fmt.Errorf("php does not listen on %s: %w", addr, err)
		}
	}
}

// ask makes one request.
func (s *phpServer) ask(ctx context.Context, path string) (r phpRequest, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return r, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return r, fmt.Errorf("ask php: %w", err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil {
		return r, fmt.Errorf("php answers %s with %s: %w", path, answer.Status, err)
	}
	return r, nil
}

// stop ends the server and removes its directory.
func (s *phpServer) stop() {
	if s.process != nil {
		s.process.Kill()
	}
	s.dir.Remove()
}
