// Package bench is what the processes of a comparison share, so that each client is measured by the same code: the protocol
// between them, the way to the fake cloud, and the loops that call and count. It needs nothing but the standard library, so that
// it adds nothing to the module list of a client's program.
//
// Three processes take part: the fake cloud (package cloud), one client (Main), and the one that starts both and compares.
package bench
