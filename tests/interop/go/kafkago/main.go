// segmentio/kafka-go against a broker: every codec, and a group that commits.
//
//	kafkago ADDRESS
//
// Prints a line for every step and ends with status 1 at the first that goes wrong.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

const perCodec = 100

func check(step string, err error) {
	if err != nil {
		fmt.Printf("FAILED %s: %v\n", step, err)
		os.Exit(1)
	}
	fmt.Println("ok", step)
}

// replicas is how many a topic gets: VARVE_INTEROP_REPLICAS, or one.
func replicas() int {
	if found, err := strconv.Atoi(os.Getenv("VARVE_INTEROP_REPLICAS")); err == nil {
		return found
	}
	return 1
}

func main() {
	address := os.Args[1]
	topic := fmt.Sprint("kafka-go", time.Now().UnixNano())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	connection, err := kafka.DialContext(ctx, "tcp", address)
	check("connect", err)
	check("create topic", connection.CreateTopics(kafka.TopicConfig{Topic: topic, NumPartitions: 2, ReplicationFactor: replicas()}))
	codecs := []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd}
	for _, codec := range codecs {
		writer := &kafka.Writer{Addr: kafka.TCP(address), Topic: topic, Compression: codec,
			RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond}
		var messages []kafka.Message
		for i := range perCodec {
			messages = append(messages, kafka.Message{Value: fmt.Append(nil, "value", i)})
		}
		check("produce "+codec.String(), writer.WriteMessages(ctx, messages...))
		check("close", writer.Close())
	}
	// Twice: what the first has committed, the second does not see. A commit fails with the connection to
	// a coordinator that dies; the reader joins again then, and may have the record a second time.
	half := len(codecs) * perCodec / 2
	for _, turn := range []string{"first", "second"} {
		reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{address}, GroupID: "group-" + topic,
			Topic: topic, StartOffset: kafka.FirstOffset, MaxWait: 200 * time.Millisecond})
		next := map[int]int64{}
		for i := 0; i < half; {
			message, err := reader.FetchMessage(ctx)
			if err == nil {
				err = reader.CommitMessages(ctx, message)
				for attempt := 0; err != nil && attempt < 20; attempt++ {
					time.Sleep(500 * time.Millisecond)
					err = reader.CommitMessages(ctx, message)
				}
			}
			if err != nil {
				check(fmt.Sprint(turn, " member, record ", i), err)
			}
			if message.Offset >= next[message.Partition] {
				next[message.Partition] = message.Offset + 1
				i++
			}
		}
		check(turn+" member of the group", reader.Close())
	}
	// Its coordinator may die while it is asked, which a kafka.Client leaves to its caller.
	client := &kafka.Client{Addr: kafka.TCP(address)}
	request := &kafka.OffsetFetchRequest{GroupID: "group-" + topic, Topics: map[string][]int{topic: {0, 1}}}
	committed, err := client.OffsetFetch(ctx, request)
	for attempt := 0; err != nil && attempt < 20; attempt++ {
		time.Sleep(500 * time.Millisecond)
		committed, err = client.OffsetFetch(ctx, request)
	}
	check("committed offsets", err)
	sum := int64(0)
	for _, partition := range committed.Topics[topic] {
		sum += partition.CommittedOffset
	}
	if sum != int64(2*half) {
		check("all is committed", fmt.Errorf("%d of %d", sum, 2*half))
	}
	check("delete topic", connection.DeleteTopics(topic))
}
