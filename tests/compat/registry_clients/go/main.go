// franz-go's client of schema registries (pkg/sr): one question on standard input, its answer on
// standard output, both JSON. See ../programs.py.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

// Question is what a test wants to know.
type Question struct {
	Verb, HTTP, Bootstrap, Topic, Subject string
	Type                                  sr.SchemaType
	Reference, Item, Order, More, Other   string
	Descriptors                           []byte
	Values                                []json.RawMessage
	Count                                 int
}

var verbs = map[string]func(context.Context, *sr.Client, Question) any{
	"register": register,
	"remove":   remove,
	"write":    write,
	"read":     read,
}

func main() {
	var question Question
	must(json.NewDecoder(os.Stdin).Decode(&question))
	client := got(sr.NewClient(sr.URLs(question.HTTP)))
	must(json.NewEncoder(os.Stdout).Encode(verbs[question.Verb](context.Background(), client, question)))
}

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}
