package cloud

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// Fault is what is wrong with a region.
type Fault string

const (
	Healthy     Fault = ""
	Unavailable Fault = "unavailable" // API calls are answered 503, the region list is served
	Dead        Fault = "dead"        // connections are reset and refused; there is no way back
	Silent      Fault = "silent"      // requests are read and never answered
)

const dispatchPath = "/twirp/livekit.AgentDispatchService/CreateDispatch"

type region struct {
	cloud    *Cloud
	host     string
	fault    atomic.Pointer[Fault]
	requests atomic.Int64
	lists    atomic.Int64
}

func (r *region) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	list := req.URL.Path == "/settings/regions"
	if list {
		r.lists.Add(1)
	} else {
		r.requests.Add(1)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	switch fault := *r.fault.Load(); {
	case fault == Silent:
		<-req.Context().Done()
	case fault == Unavailable && !list:
		w.Header()["Content-Type"] = []string{"application/json"}
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"code":"unavailable","msg":"maintenance"}`)
	case list && req.Method == http.MethodGet:
		r.cloud.list(w, req)
	case req.URL.Path == dispatchPath && req.Method == http.MethodPost:
		r.dispatch(w, req, body)
	default:
		r.cloud.bad(fmt.Errorf("%s %s", req.Method, req.URL.Path))
		http.NotFound(w, req)
	}
}

func (r *region) dispatch(w http.ResponseWriter, req *http.Request, body []byte) {
	agent, room, err := readRequest(body)
	if err == nil {
		err = r.cloud.check(req, r.host, room)
	}
	if err != nil {
		r.cloud.bad(err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header()["Content-Type"] = []string{"application/protobuf"}
	w.Write(appendAnswer(make([]byte, 0, 64), "AD_fake", agent, room))
}

// check says what is wrong with a request. Who measures asks for less, since the time is the clients'.
func (c *Cloud) check(req *http.Request, host, room string) error {
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return fmt.Errorf("no token")
	}
	if !c.strict {
		return nil
	}
	if got := strings.Split(req.Host, ":")[0]; got != host && got != "127.0.0.1" {
		return fmt.Errorf("a request for %s came to %s", got, host)
	}
	c.mu.Lock()
	c.tokens[token] = true
	c.mu.Unlock()
	return checkToken(token, c.site.Key, c.site.Secret, room)
}

// list serves the regions in the scheme of the request.
func (c *Cloud) list(w http.ResponseWriter, req *http.Request) {
	scheme := "http"
	if req.TLS != nil {
		scheme = "https"
	}
	entries := make([]string, len(c.regions))
	for i, r := range c.regions {
		entries[i] = fmt.Sprintf(`{"region":"region-%d","url":"%s://%s","distance":"%d"}`, i, scheme, r.host, i*1000)
	}
	w.Header()["Content-Type"] = []string{"application/json"}
	w.Header()["Cache-Control"] = []string{"max-age=300"}
	fmt.Fprintf(w, `{"regions":[%s]}`, strings.Join(entries, ","))
}
