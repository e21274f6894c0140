package failover

import (
	"sync"
	"time"
)

const (
	budgetSize    = 100.0 // tokens: so many repeats in a row before the budget limits them
	budgetPerTime = 1.0   // tokens a second
	budgetPerCall = 0.2   // tokens a call, so that a long outage sees one repeat for five calls, beside those of budgetPerTime
	costOfRepeat  = 1.0
)

// budget keeps the repeats of one host from multiplying the load of an outage. Safe for concurrent use.
// The zero value is full.
type budget struct {
	mu    sync.Mutex
	spent float64
	at    time.Time
}

// call credits a call.
func (b *budget) call() {
	b.mu.Lock()
	b.spent = max(b.spent-budgetPerCall, 0)
	b.mu.Unlock()
}

// take pays for one repeat. It reports false, and takes nothing, if the budget is empty.
func (b *budget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if elapsed := now.Sub(b.at).Seconds(); elapsed > 0 {
		b.spent = max(b.spent-elapsed*budgetPerTime, 0)
		b.at = now
	}
	if b.spent+costOfRepeat > budgetSize {
		return false
	}
	b.spent += costOfRepeat
	return true
}
