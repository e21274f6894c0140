package auth

import "unicode/utf8"

// check says which claim has a value that cannot be written, or that no LiveKit server can read.
func (c *ClaimGrants) check() error {
	if c == nil {
		return nil
	}
	for _, kind := range c.KindDetails {
		if !isName(kind) {
			return invalidClaim("kindDetails has %q, which is no kind detail", kind)
		}
	}
	if c.Kind != "" && !isName(c.Kind) {
		return invalidClaim("kind is %q, which is no participant kind", c.Kind)
	}
	if c.Video != nil {
		for _, source := range c.Video.CanPublishSources {
			if !isName(source) {
				return invalidClaim("video.canPublishSources has %q, which is no track source", source)
			}
		}
	}
	for claim, text := range c.texts {
		if !utf8.ValidString(text) { // JSON has no such text; encoding/json would change it without a word
			return invalidClaim("%s is not UTF-8: %q", claim, short(text))
		}
	}
	return nil
}

// isName tells whether text can be the name of an enum value, known here or not. A number, which a value without a name
// becomes, is none.
func isName(text string) bool {
	for i, r := range text {
		if letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'; !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != ""
}

// texts yields the claims that are text of any form, with their names. The room configuration is left out: protobuf's JSON checks
// it.
func (c *ClaimGrants) texts(yield func(claim, text string) bool) {
	more := yield("identity", c.Identity) && yield("name", c.Name) && yield("metadata", c.Metadata) &&
		yield("roomPreset", c.RoomPreset) && yield("sha256", c.Sha256)
	for key, value := range c.Attributes {
		more = more && yield("attributes", key) && yield("attributes", value)
	}
	if v := c.Video; v != nil {
		more = more && yield("video.room", v.Room) && yield("video.destinationRoom", v.DestinationRoom)
	}
	if e := c.AgentEndpoint; e != nil {
		more = more && yield("agentEndpoint.agentName", e.AgentName) && yield("agentEndpoint.deployment", e.Deployment)
	}
	if t := c.AgentThread; t != nil {
		more = more && yield("agentThread.scope", t.Scope)
		for _, id := range t.ThreadIDs {
			more = more && yield("agentThread.threadIds", id)
		}
	}
	if d := c.AgentDatabase; d != nil {
		for _, id := range d.DatabaseIDs {
			more = more && yield("agentDatabase.databaseIds", id)
		}
	}
}

// short cuts text that may be long for an error.
func short(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
