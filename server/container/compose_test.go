package container

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/server/instance"
)

// TestContainerImage checks that our image can stand in for the official one.
func TestContainerImage(t *testing.T) {
	docker := needDocker(t)
	if err := servertest.BuildImage(); err != nil {
		servertest.Unable(t, err)
	}
	out, err := exec.Command("../../image/build.sh").CombinedOutput()
	if err != nil || !strings.Contains(string(out), localImage+" is up to date") {
		t.Errorf("built again, it says %q, %v; want an image that is up to date", out, err)
	}
	in, err := docker.ImageInspect(t.Context(), localImage)
	must(t, "inspect the image", err)
	_, data := in.Config.Volumes["/data"]
	_, port := in.Config.ExposedPorts["6379/tcp"]
	if in.Config.WorkingDir != "/data" || !data || !port || fmt.Sprint(in.Config.Cmd) != "[redis-server]" {
		t.Errorf("the image is configured as %+v", in.Config)
	}
	for _, c := range []struct{ args, want string }{
		{"--version", "Redis server v="},
		{"redis-cli --version", "redis-cli "},
		{"redis-sentinel --version", "v="},
		{"sh -c pwd", "/data"},
	} {
		args := append([]string{"run", "--rm", "--network", "none", "--label", ownerLabel + "=" + ownLabel(), localImage}, strings.Fields(c.args)...)
		if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("docker run IMAGE %s: %v, %q; want %q", c.args, err, out, c.want)
		}
	}
}

// composeCommand returns docker-compose 1.29, or Compose v2 where that is missing.
func composeCommand(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("docker-compose"); err == nil {
		return []string{"docker-compose"}
	}
	if err := exec.Command("docker", "compose", "version").Run(); err != nil {
		servertest.Unable(t, fmt.Errorf("neither docker-compose nor docker compose is installed: %w", err))
	}
	return []string{"docker", "compose"}
}

// TestContainerCompose brings up all profiles of docker-compose.yml at the same time, and uses each as the comments in
// that file say.
func TestContainerCompose(t *testing.T) {
	docker := needDocker(t)
	compose := composeCommand(t)
	t.Parallel()
	for profile, c := range map[string]struct {
		containers int
		ports      []int
		use        func(*testing.T)
	}{
		"single":   {1, []int{16379}, func(t *testing.T) { useServer(t, 16379, "appendonly", "no") }},
		"aof":      {1, []int{16380}, func(t *testing.T) { useServer(t, 16380, "appendonly", "yes") }},
		"replica":  {3, []int{16401, 16402}, useReplica},
		"sentinel": {7, []int{16501, 16502, 16503, 16511, 16512, 16513}, useSentinel},
		"cluster":  {8, []int{16601, 16602, 16603, 16604, 16605, 16606}, useCluster},
		"masters":  {5, []int{16701, 16702, 16703, 16704, 16705}, useMasters},
	} {
		t.Run(profile, func(t *testing.T) {
			for _, p := range c.ports {
				if !portFree(p) {
					servertest.Unable(t, fmt.Errorf("port %d is in use: is docker-compose.yml up?", p))
				}
			}
			t.Parallel()
			project := fmt.Sprintf("oversell-test-%d-%s", os.Getpid(), profile)
			run := func(args ...string) {
				all := append(append(compose[1:len(compose):len(compose)], "-f", "../../docker-compose.yml", "-p", project, "--profile", profile), args...)
				cmd := exec.Command(compose[0], all...)
				cmd.Env = append(os.Environ(), "REDIS_IMAGE="+servertest.Image(t))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
				}
			}
			label := "com.docker.compose.project=" + project
			t.Cleanup(func() {
				run("down", "-v", "-t", "1")
				if n := labelled(t, docker, label); n != 0 {
					t.Errorf("%d containers are left after down", n)
				}
			})
			run("up", "-d")
			if profile == "cluster" { // "up" must have waited until the cluster can be used
				slotsAreServed(t)
			}
			awaitHealth(t, docker, label, c.containers)
			c.use(t)
		})
	}
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

// awaitHealth waits until all containers report that they are healthy.
func awaitHealth(t *testing.T, docker client.APIClient, label string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		list, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
		must(t, "list containers", err)
		if len(list.Items) != want {
			t.Fatalf("there are %d containers; want %d", len(list.Items), want)
		}
		ill := ""
		for _, s := range list.Items {
			// A Status is like "Up 3 seconds (healthy)", or "Up 3 seconds" if the container has no health check.
			if s.State != container.StateRunning || strings.Contains(s.Status, "starting") || strings.Contains(s.Status, "unhealthy") {
				ill += fmt.Sprintf(" %s: %s;", s.Names[0], s.Status)
			}
		}
		switch {
		case ill == "":
			return
		case ctx.Err() != nil || strings.Contains(ill, "Exited"):
			t.Fatalf("not well:%s", ill)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func clientOf(t *testing.T, port int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: loopback(port)})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func useServer(t *testing.T, port int, setting, want string) {
	c := clientOf(t, port)
	must(t, "SET", c.Set(t.Context(), "k", "v", 0).Err())
	if got := c.ConfigGet(t.Context(), setting).Val()[setting]; got != want {
		t.Errorf("%s is %q; want %q", setting, got, want)
	}
}

func useReplica(t *testing.T) {
	primary := clientOf(t, 16401)
	must(t, "SET", primary.Set(t.Context(), "k", "v", 0).Err())
	if n := primary.Wait(t.Context(), 1, 5*time.Second).Val(); n != 1 {
		t.Errorf("%d replicas have the key; want 1", n)
	}
	if text := primary.Info(t.Context(), "replication").Val(); !strings.Contains(text, "slave0:ip=127.0.0.1,port=16402") {
		t.Errorf("the primary tells of its replica: %s", text)
	}
}

func useSentinel(t *testing.T) {
	s := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "mymaster", SentinelAddrs: []string{loopback(16511), loopback(16512), loopback(16513)},
	})
	t.Cleanup(func() { _ = s.Close() })
	must(t, "SET", s.Set(t.Context(), "k", "v", 0).Err())
	if n := s.Wait(t.Context(), 2, 5*time.Second).Val(); n != 2 {
		t.Errorf("%d replicas have the key; want 2", n)
	}
}

func useCluster(t *testing.T) {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{loopback(16601)}})
	t.Cleanup(func() { _ = c.Close() })
	for i := range 20 {
		must(t, "SET", c.Set(t.Context(), fmt.Sprint("k", i), "v", 0).Err())
	}
	nodes := c.ClusterNodes(t.Context()).Val()
	if m, r := strings.Count(nodes, "master -"), strings.Count(nodes, " 127.0.0.1:"); m != 3 || r != 6 {
		t.Errorf("the cluster has %d masters of %d nodes at 127.0.0.1; want 3 of 6:\n%s", m, r, nodes)
	}
}

// slotsAreServed checks, without waiting, that every node says that all slots are served.
func slotsAreServed(t *testing.T) {
	for port := 16601; port <= 16606; port++ {
		text := clientOf(t, port).ClusterInfo(t.Context()).Val()
		if in := instance.ParseInfo(text); in["cluster_state"] != "ok" || in.Number("cluster_slots_ok") != 16384 {
			t.Errorf("when docker-compose up returns, the node on port %d says: %s", port, text)
		}
	}
}

func useMasters(t *testing.T) {
	seen := map[string]bool{}
	for port := 16701; port <= 16705; port++ {
		useServer(t, port, "appendonly", "no")
		text, err := clientOf(t, port).Info(t.Context(), "server").Result()
		must(t, "INFO", err)
		seen[instance.ParseInfo(text)["run_id"]] = true
	}
	if len(seen) != 5 {
		t.Errorf("there are %d different servers; want 5", len(seen))
	}
}
