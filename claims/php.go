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
	"strconv"
	"time"

	"oversell/clock"
	"oversell/internal/child"
	"oversell/internal/freeport"
	"oversell/internal/workdir"
	"oversell/server"
)

//go:embed pconnect.php
var pconnect []byte

// phpAnswer reports what happens to phpredis' connections between two requests.
type phpAnswer struct {
	Version  string // of the extension
	Closed   bool   // after pconnect() and close(), the next request has the same connection
	Dropped  bool   // after pconnect() without close(), too
	Database bool   // with the selected database
	Plain    bool   // after connect() and close(), too
}

// phpTime bounds the whole measurement with PHP.
const phpTime = 10 * time.Second

// phpReuse measures whether phpredis reuses persistent connections, by requests to one process of PHP's built-in
// web server, or explains why that is impossible here.
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

// phpServer is a PHP web server that serves one request at a time, in one process.
type phpServer struct {
	process *child.Process
	dir     *workdir.Dir
	url     string
}

// phpRequest is the answer of pconnect.php.
type phpRequest struct {
	Error    string `json:"error"`
	Version  string `json:"version"`
	ID       int64  `json:"id"`
	Selected bool   `json:"selected"`
}

// startPHP starts the server and waits until it answers.
func startPHP(ctx context.Context, php, redis string) (s *phpServer, err error) {
	redisHost, redisPort, err := net.SplitHostPort(redis)
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
	port, err := freeport.One()
	if err != nil {
		return s, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s.url = "http://" + addr + "/"
	cmd := exec.Command(php, "-S", addr, script)
	cmd.Env = append(os.Environ(), "REDIS_HOST="+redisHost, "REDIS_PORT="+redisPort, "PHP_CLI_SERVER_WORKERS=")
	if s.process, err = child.Start(cmd); err != nil {
		return s, fmt.Errorf("start php: %w", err)
	}
	// The server drops the request that follows a connection on which nothing was sent. So requests are sent until
	// one is answered, and no connection is opened only to probe.
	ctx, cancel := context.WithTimeout(ctx, phpStart)
	defer cancel()
	for {
		_, err := s.ask(ctx, "plain/close")
		if err == nil {
			return s, nil
		}
		if s.process.Gone() {
			return s, fmt.Errorf("php ended: %v: %s", s.process.Err(), s.process.Output.String())
		}
		if (clock.Real{}).Sleep(ctx, shortWait) != nil {
			return s, err
		}
	}
}

// phpStart is how long PHP's server may take to start.
const phpStart = 20 * time.Second

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

// stop stops the server and removes its directory.
func (s *phpServer) stop() {
	if s.process != nil {
		s.process.Kill()
	}
	s.dir.Remove()
}
