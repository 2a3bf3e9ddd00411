// franz-go's client of schema registries (pkg/sr): a question on each line of standard input, its
// answer on a line of standard output. See ../programs.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

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
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for questions.More() {
		var question Question
		must(questions.Decode(&question))
		must(answers.Encode(answer(question)))
	}
}

// answer is what the verb of a question does, or what went wrong.
func answer(question Question) (said map[string]any) {
	defer func() {
		if failure := recover(); failure != nil {
			said = map[string]any{"failed": fmt.Sprintf("%v\n%s", failure, debug.Stack())}
		}
	}()
	client := got(sr.NewClient(sr.URLs(question.HTTP)))
	return map[string]any{"answer": verbs[question.Verb](context.Background(), client, question)}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}
