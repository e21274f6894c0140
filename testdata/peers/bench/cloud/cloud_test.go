package cloud_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/testdata/peers/bench"
	"github.com/lkrpc/lkrpc/testdata/peers/bench/cloud"
)

const path = "/twirp/livekit.AgentDispatchService/CreateDispatch"

// request is a CreateAgentDispatchRequest of agent "a" in room "room".
const request = "\x0a\x01a\x12\x04room"

func start(t *testing.T) (*cloud.Cloud, map[bench.Proto]*http.Client) {
	t.Helper()
	c, err := cloud.Start(true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	users := make(map[bench.Proto]*http.Client)
	for _, p := range bench.Protos() {
		tr := &http.Transport{ForceAttemptHTTP2: true}
		c.Site().Lead(p, tr)
		t.Cleanup(tr.CloseIdleConnections)
		users[p] = &http.Client{Transport: tr}
	}
	return c, users
}

// post creates a dispatch at a host, and returns the status, the body and the protocol of the answer.
func post(t *testing.T, c *cloud.Cloud, user *http.Client, p bench.Proto, host, token string) (int, string, *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL(host)+path, strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := user.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp
}

func TestCalls(t *testing.T) {
	c, users := start(t)
	for p, user := range users {
		status, body, resp := post(t, c, user, p, bench.Home, c.Site().Token)
		if status != 200 || !strings.Contains(body, "\x1a\x04room") || !strings.Contains(body, "\x12\x01a") {
			t.Fatalf("%s: %d %q", p, status, body)
		}
		if h2 := resp.ProtoMajor == 2; h2 != (p == bench.HTTP2) || (resp.TLS == nil) != (p == bench.Plain) {
			t.Errorf("%s: answered over %s", p, resp.Proto)
		}
		resp, err := user.Get(p.URL(bench.Home) + "/settings/regions")
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Regions []struct{ URL string } }
		err = json.NewDecoder(resp.Body).Decode(&list)
		resp.Body.Close()
		if err != nil || len(list.Regions) != 3 || list.Regions[0].URL != p.URL(bench.Home) {
			t.Errorf("%s: regions %v, %v", p, list, err)
		}
	}
	s := c.Stats()
	if s.Requests[0] != 3 || s.Requests[1] != 0 || s.Lists != 3 || s.Open == 0 || s.Opened < 3 || s.Bad != 0 || s.Tokens != 1 {
		t.Errorf("stats: %+v", s)
	}
}

// A strict cloud lets no wrong token pass, so that a comparison counts calls that would have worked.
func TestTokens(t *testing.T) {
	c, users := start(t)
	good := c.Site().Token
	for i, token := range []string{"", "x", good[:len(good)-3] + "abc", strings.Replace(good, ".", ".e30", 1)} {
		if status, body, _ := post(t, c, users[bench.Plain], bench.Plain, bench.Home, token); status != 400 {
			t.Errorf("token %d: %d %s", i, status, body)
		}
	}
	if s := c.Stats(); s.Bad != 4 || s.Worst == "" {
		t.Errorf("stats: %+v", s)
	}
}

func TestFaults(t *testing.T) {
	c, users := start(t)
	p, user := bench.TLS, users[bench.TLS]
	post(t, c, user, p, bench.Home, c.Site().Token)
	if err := c.Break(0, cloud.Unavailable); err != nil {
		t.Fatal(err)
	}
	if status, body, _ := post(t, c, user, p, bench.Home, c.Site().Token); status != 503 || !strings.Contains(body, `"unavailable"`) {
		t.Errorf("unavailable: %d %s", status, body)
	}
	if err := c.Break(0, cloud.Dead); err != nil {
		t.Fatal(err)
	}
	if status, body, resp := post(t, c, user, p, bench.Home, c.Site().Token); resp != nil {
		t.Errorf("dead: %d %s", status, body)
	}
	if status, body, _ := post(t, c, user, p, "demo.tokyo.production.livekit.cloud", c.Site().Token); status != 200 {
		t.Errorf("the other region: %d %s", status, body)
	}
	if status, body, resp := post(t, c, user, p, "elsewhere.example.com", c.Site().Token); resp != nil || !strings.Contains(body, "no such host") {
		t.Errorf("another name: %d %s", status, body)
	}
	if err := c.Break(3, cloud.Dead); err == nil {
		t.Error("a region that is not there was broken")
	}
}

func TestServe(t *testing.T) {
	var out bytes.Buffer
	if err := cloud.Serve(strings.NewReader(`{"Break":[1],"Fault":"dead"}`+"\n{}\n"), &out, false); err != nil {
		t.Fatal(err)
	}
	in := json.NewDecoder(&out)
	var site bench.Site
	if err := in.Decode(&site); err != nil || site.Hosts[bench.HTTP2][bench.Home] == "" || site.Token == "" {
		t.Errorf("site %+v, %v", site, err)
	}
	for range 2 {
		var s cloud.Stats
		if err := in.Decode(&s); err != nil || len(s.Requests) != 3 {
			t.Errorf("stats %+v, %v", s, err)
		}
	}
}
