package auth

import "slices"

// SIPGrant allows calls of the SIP and phone number APIs. A zero field allows nothing.
type SIPGrant struct {
	Admin bool `json:"admin,omitempty"` // trunks, dispatch rules and phone numbers
	Call  bool `json:"call,omitempty"`  // to dial out and to transfer calls
}

// AgentGrant allows the administration of agents. A zero field allows nothing. To be an agent, a worker has VideoGrant.Agent;
// to dispatch one takes VideoGrant.RoomAdmin for its room.
type AgentGrant struct {
	Admin           bool `json:"admin,omitempty"`           // to deploy and manage agents that LiveKit Cloud hosts
	DispatchAdmin   bool `json:"dispatchAdmin,omitempty"`   // to manage the project's queue of dispatches
	SimulationAdmin bool `json:"simulationAdmin,omitempty"` // to run simulations
}

// InferenceGrant allows the use of LiveKit's hosted models. A zero field allows nothing.
type InferenceGrant struct {
	Perform bool `json:"perform,omitempty"` // to call any of the models
}

// ObservabilityGrant allows reporting telemetry. A zero field allows nothing.
type ObservabilityGrant struct {
	Write bool `json:"write,omitempty"`
}

// AgentEndpointGrant allows calls of HTTP endpoints that agents serve and that are not public.
type AgentEndpointGrant struct {
	Call       bool   `json:"call,omitempty"`
	AgentName  string `json:"agentName,omitempty"`  // this agent's only; empty: every agent's
	Deployment string `json:"deployment,omitempty"` // this deployment's only; empty: every deployment's
}

// AgentThreadGrant allows the use of threads, the stored conversations of agents. A zero field allows nothing.
type AgentThreadGrant struct {
	All       bool     `json:"all,omitempty"`       // every thread and scope of the project, rather than those below
	Scope     string   `json:"scope,omitempty"`     // where threads may be listed and created
	ThreadIDs []string `json:"threadIds,omitempty"` // which threads may be read, written and deleted
	List      bool     `json:"list,omitempty"`
	Create    bool     `json:"create,omitempty"`
	Write     bool     `json:"write,omitempty"`
	Read      bool     `json:"read,omitempty"`
	Delete    bool     `json:"delete,omitempty"`
	SQL       bool     `json:"sql,omitempty"` // to open a thread's database
}

// AgentDatabaseGrant allows the use of databases that belong to no thread. A zero field allows nothing.
type AgentDatabaseGrant struct {
	DatabaseIDs []string `json:"databaseIds,omitempty"` // which may be read, written and deleted
	Read        bool     `json:"read,omitempty"`
	Write       bool     `json:"write,omitempty"`
	Delete      bool     `json:"delete,omitempty"`
	Create      bool     `json:"create,omitempty"` // in the project
	List        bool     `json:"list,omitempty"`   // those of the project
}

// Clone returns a copy; it is nil for nil.
func (g *SIPGrant) Clone() *SIPGrant { return clone(g) }

// Clone returns a copy; it is nil for nil.
func (g *AgentGrant) Clone() *AgentGrant { return clone(g) }

// Clone returns a copy; it is nil for nil.
func (g *InferenceGrant) Clone() *InferenceGrant { return clone(g) }

// Clone returns a copy; it is nil for nil.
func (g *ObservabilityGrant) Clone() *ObservabilityGrant { return clone(g) }

// Clone returns a copy; it is nil for nil.
func (g *AgentEndpointGrant) Clone() *AgentEndpointGrant { return clone(g) }

// Clone returns a copy that shares nothing with g; it is nil for nil.
func (g *AgentThreadGrant) Clone() *AgentThreadGrant {
	c := clone(g)
	if c != nil {
		c.ThreadIDs = slices.Clone(g.ThreadIDs)
	}
	return c
}

// Clone returns a copy that shares nothing with g; it is nil for nil.
func (g *AgentDatabaseGrant) Clone() *AgentDatabaseGrant {
	c := clone(g)
	if c != nil {
		c.DatabaseIDs = slices.Clone(g.DatabaseIDs)
	}
	return c
}

// clone copies what a pointer points to, if anything.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
