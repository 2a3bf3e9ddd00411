// franz-go on a secured cluster: a question on each line of standard input, its answer on a line of
// standard output. See ../../registry_clients/programs.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const timeout = 30 * time.Second

// Question names a verb, the security of the connection, and what the verb is about.
type Question struct {
	Verb, Bootstrap, Topic, Group    string
	Mechanism, User, Password, Token string
	CA, Certificate, Key             string // PEM files
	Values                           []string
	Count                            int
}

var verbs = map[string]func(context.Context, Question) (any, error){
	"create":  create,
	"produce": produce,
	"consume": consume,
	"groups":  groups,
	"delete":  remove,
}

func main() {
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for questions.More() {
		var question Question
		if err := questions.Decode(&question); err != nil {
			panic(err)
		}
		if err := answers.Encode(answer(question)); err != nil {
			panic(err)
		}
	}
}

func answer(question Question) map[string]any {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	said, err := verbs[question.Verb](ctx, question)
	if err != nil {
		return map[string]any{"failed": fmt.Sprint(err)}
	}
	return map[string]any{"answer": said}
}

func create(ctx context.Context, q Question) (any, error) {
	client, err := connect(q)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	made, err := admin.CreateTopic(ctx, 3, 1, nil, q.Topic)
	if err != nil {
		return nil, err
	}
	described, err := admin.ListTopics(ctx, made.Topic)
	if err != nil {
		return nil, err
	}
	return len(described[q.Topic].Partitions), described[q.Topic].Err
}

func produce(ctx context.Context, q Question) (any, error) {
	client, err := connect(q)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, value := range q.Values {
		records = append(records, &kgo.Record{Topic: q.Topic, Value: []byte(value)})
	}
	return len(records), client.ProduceSync(ctx, records...).FirstErr()
}

func consume(ctx context.Context, q Question) (any, error) {
	client, err := connect(q, kgo.ConsumeTopics(q.Topic), kgo.ConsumerGroup(q.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var values []string
	for len(values) < q.Count {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return nil, err
		}
		for _, record := range fetched.Records() {
			values = append(values, string(record.Value))
		}
	}
	return values, client.CommitUncommittedOffsets(ctx)
}

// groups is the sum of the offsets that the group has committed for the topic.
func groups(ctx context.Context, q Question) (any, error) {
	client, err := connect(q)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, q.Group)
	if err != nil {
		return nil, err
	}
	var sum int64
	for _, each := range offsets[q.Topic] {
		if each.Err != nil {
			return nil, each.Err
		}
		sum += each.At
	}
	return sum, nil
}

func remove(ctx context.Context, q Question) (any, error) {
	client, err := connect(q)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	deleted, err := kadm.NewClient(client).DeleteTopic(ctx, q.Topic)
	return deleted.Topic, err
}
