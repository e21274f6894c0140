package cloud

import (
	"encoding/binary"
	"errors"
)

// The two messages of CreateDispatch, of which only texts are read and written.
const (
	requestAgent, requestRoom         = 1, 2
	answerID, answerAgent, answerRoom = 1, 2, 3
)

var errWire = errors.New("the request is no message of texts")

// readRequest reads a CreateAgentDispatchRequest.
func readRequest(data []byte) (agent, room string, err error) {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag&7 != 2 {
			return "", "", errWire
		}
		data = data[n:]
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return "", "", errWire
		}
		text := string(data[n : n+int(size)])
		data = data[n+int(size):]
		switch tag >> 3 {
		case requestAgent:
			agent = text
		case requestRoom:
			room = text
		}
	}
	return agent, room, nil
}

// appendAnswer writes an AgentDispatch.
func appendAnswer(to []byte, id, agent, room string) []byte {
	for field, text := range map[int]string{answerID: id, answerAgent: agent, answerRoom: room} {
		to = binary.AppendUvarint(to, uint64(field)<<3|2)
		to = binary.AppendUvarint(to, uint64(len(text)))
		to = append(to, text...)
	}
	return to
}
