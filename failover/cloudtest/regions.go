package cloudtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/lkrpc/lkrpc/failover"
)

// listing is what /settings/regions says, and where the project may be used.
type listing struct {
	header  http.Header
	given   []failover.Region // in place of the real ones, if set
	set     bool
	pinned  bool
	allowed []*Host
}

// Pin ties the project to regions: elsewhere, API calls are answered with 451 and RTC connections with 403, and the region list
// names only these. With none, no region is allowed. Hosts outside the region list are not concerned.
func (c *Cloud) Pin(regions ...*Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing.pinned, c.listing.allowed = true, slices.Clone(regions)
}

// Unpin allows every region again.
func (c *Cloud) Unpin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing.pinned, c.listing.allowed = false, nil
}

func (h *Host) pinnedElsewhere() bool {
	l := h.cloud.listed()
	return l.pinned && h.region != "" && !slices.Contains(l.allowed, h)
}

// ListRegions makes the region list name these regions, whatever they are: hosts that do not exist, foreign ones, none. They
// are listed whether the project is pinned or not. (A list that is broken, slow or huge is made by Break, On(RegionList).)
func (c *Cloud) ListRegions(regions ...failover.Region) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing.given, c.listing.set = slices.Clone(regions), true
}

// ListOwnRegions makes the region list name the Cloud's own regions again.
func (c *Cloud) ListOwnRegions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing.given, c.listing.set = nil, false
}

// SetListHeader sets the headers of the region list beside Content-Type. The default is "Cache-Control: max-age=300".
func (c *Cloud) SetListHeader(header http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing.header = header.Clone()
}

func (c *Cloud) listed() listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listing
}

// answerRegions serves the region list. LiveKit Cloud writes the distance as a text, as protobuf JSON does with 64-bit numbers.
func (h *Host) answerRegions(rep *reply, r *http.Request) {
	type entry struct {
		Region   string `json:"region"`
		URL      string `json:"url"`
		Distance string `json:"distance"`
	}
	if _, err := h.cloud.claims(r); err != nil {
		http.Error(rep, err.Error(), http.StatusUnauthorized)
		return
	}
	l := h.cloud.listed()
	list := struct {
		Regions []entry `json:"regions"`
	}{[]entry{}}
	for _, region := range l.regions(h.cloud) {
		list.Regions = append(list.Regions, entry{region.Name, region.URL, strconv.FormatInt(region.Distance, 10)})
	}
	for name, values := range l.header {
		rep.header[name] = values
	}
	rep.header.Set("Content-Type", "application/json")
	json.NewEncoder(rep).Encode(list)
}

// regions returns what the list names.
func (l *listing) regions(c *Cloud) []failover.Region {
	if l.set {
		return l.given
	}
	var own []failover.Region
	for i, h := range c.regions {
		if !l.pinned || slices.Contains(l.allowed, h) {
			own = append(own, failover.Region{Name: h.region, URL: h.URL(), Distance: int64(i) * 1000})
		}
	}
	return own
}
