package failover

import "log/slog"

// name is what was called, for an error or a log.
func (c *call) name() string {
	if c.req == nil {
		return "connect"
	}
	return Line(c.req.Method+" "+c.req.URL.Path, maxText)
}

// report tells the observer and the log of an attempt that is over.
func (c *call) report(a *Attempt) {
	if c.t.onAttempt != nil {
		c.t.onAttempt(c.caller, *a)
	}
	if !c.t.log.Enabled(c.caller, slog.LevelDebug) {
		return
	}
	attrs := append(c.logAttrs(), slog.Int("attempt", a.Number), slog.String("origin", a.Origin), slog.String("result", a.Reason),
		slog.Duration("duration", a.Duration), slog.Duration("wait", a.Wait))
	if a.Status != 0 {
		attrs = append(attrs, slog.Int("status", a.Status))
	}
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", textOf(a.Err)))
	}
	c.t.log.LogAttrs(c.caller, slog.LevelDebug, "attempt", attrs...)
}

// logNext tells the log that an attempt follows another.
func (c *call) logNext(a *Attempt, why string) {
	if !c.t.log.Enabled(c.caller, slog.LevelInfo) {
		return
	}
	c.t.log.LogAttrs(c.caller, slog.LevelInfo, "another attempt", append(c.logAttrs(), slog.Int("attempt", a.Number),
		slog.String("origin", a.Origin), slog.Duration("wait", a.Wait), slog.String("after", why))...)
}

func (c *call) logFailure(what string) {
	if !c.t.log.Enabled(c.caller, slog.LevelWarn) {
		return
	}
	c.t.log.LogAttrs(c.caller, slog.LevelWarn, "call failed", append(c.logAttrs(), slog.Int("attempts", len(c.trail.Attempts)),
		slog.Bool("outcome_unknown", c.trail.OutcomeUnknown), slog.String("error", what))...)
}

func (c *call) logAttrs() []slog.Attr {
	return []slog.Attr{slog.String("call", c.name()), slog.String("host", c.configured.host), slog.String("request_id", c.trail.RequestID)}
}
