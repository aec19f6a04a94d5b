// sarama against a broker, as it speaks for five generations of Kafka: every codec, groups,
// read-process-write, administration.
//
//	sarama ADDRESS
//
// Prints a line for every step and ends with status 1 at the first that goes wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

const (
	perCodec = 20
	patience = 60 * time.Second
)

func check(step string, err error) {
	if err != nil {
		fmt.Printf("FAILED %s: %v\n", step, err)
		os.Exit(1)
	}
	fmt.Println("ok", step)
}

// mover reads a claim; what it reads goes on to another topic in transactions, if it has a producer.
type mover struct {
	wanted   int
	got      int
	producer sarama.AsyncProducer
	group    string
	out      string
	stop     context.CancelFunc
}

func (m *mover) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *mover) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *mover) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message := <-claim.Messages():
			if message == nil {
				return nil
			}
			if m.producer == nil {
				session.MarkMessage(message, "")
			} else if err := m.move(message); err != nil {
				return err
			}
			if m.got++; m.got == m.wanted {
				m.stop()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

// move does it twice: the first transaction is aborted.
func (m *mover) move(message *sarama.ConsumerMessage) error {
	for _, end := range []func() error{m.producer.AbortTxn, m.producer.CommitTxn} {
		if err := m.producer.BeginTxn(); err != nil {
			return err
		}
		m.producer.Input() <- &sarama.ProducerMessage{Topic: m.out, Value: sarama.ByteEncoder(message.Value)}
		if err := m.producer.AddMessageToTxn(message, m.group, nil); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) read(address string, config *sarama.Config, topic string) error {
	group, err := sarama.NewConsumerGroup([]string{address}, m.group, config)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	m.stop = stop
	if err := errors.Join(group.Consume(ctx, []string{topic}, m), group.Close()); err != nil {
		return err
	}
	if m.got != m.wanted {
		return fmt.Errorf("%d records instead of %d", m.got, m.wanted)
	}
	return nil
}

func as(version sarama.KafkaVersion, address string) {
	name := func(step string) string { return version.String() + " " + step }
	brokers := []string{address}
	config := sarama.NewConfig()
	config.Version = version
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	topic := fmt.Sprintf("sarama-%s-%d", version, time.Now().UnixNano())
	out := topic + "-out"

	admin, err := sarama.NewClusterAdmin(brokers, config)
	check(name("connect"), err)
	defer admin.Close()
	for _, one := range []string{topic, out} {
		err = errors.Join(err, admin.CreateTopic(one, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: replicas()}, false))
	}
	check(name("create topics"), err)

	codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP,
		sarama.CompressionSnappy, sarama.CompressionLZ4}
	if version.IsAtLeast(sarama.V2_1_0_0) {
		codecs = append(codecs, sarama.CompressionZSTD)
	}
	for _, codec := range codecs {
		config.Producer.Compression = codec
		producer, err := sarama.NewSyncProducer(brokers, config)
		check(name("producer"), err)
		for i := range perCodec {
			_, _, sent := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint(i))})
			err = errors.Join(err, sent)
		}
		check(name("produce "+codec.String()), errors.Join(err, producer.Close()))
	}

	transactional := *config
	transactional.Producer.Transaction.ID = topic
	producer, err := sarama.NewAsyncProducer(brokers, &transactional)
	check(name("transactional producer"), err)
	go func() {
		for range producer.Successes() {
		}
	}()
	go func() {
		// What is aborted before it has left comes back here too.
		for range producer.Errors() {
		}
	}()
	wanted := perCodec * len(codecs)
	moving := &mover{wanted: wanted, producer: producer, group: "move-" + topic, out: out}
	check(name("read-process-write"), moving.read(address, config, topic))
	check(name("close"), producer.Close())
	reading := &mover{wanted: wanted, group: "read-" + topic}
	check(name("read committed"), reading.read(address, config, out))

	offsets, err := admin.ListConsumerGroupOffsets("move-"+topic, map[string][]int32{topic: {0}})
	if err == nil && offsets.GetBlock(topic, 0).Offset != int64(wanted) {
		err = fmt.Errorf("committed %d", offsets.GetBlock(topic, 0).Offset)
	}
	check(name("committed offsets"), err)
	_, err = admin.DescribeConsumerGroups([]string{"read-" + topic})
	check(name("describe group"), err)
	if version.IsAtLeast(sarama.V1_1_0_0) {
		// Below, it asks with version 0, which Kafka 4 serves no longer either.
		_, err = admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
		check(name("describe config"), err)
	}
	check(name("delete topics"), errors.Join(admin.DeleteTopic(topic), admin.DeleteTopic(out)))
}

// replicas is how many a topic gets: VARVE_INTEROP_REPLICAS, or one.
func replicas() int16 {
	if found, err := strconv.ParseInt(os.Getenv("VARVE_INTEROP_REPLICAS"), 10, 16); err == nil {
		return int16(found)
	}
	return 1
}

func main() {
	for _, version := range []sarama.KafkaVersion{sarama.V0_11_0_0, sarama.V2_0_0_0, sarama.V2_8_0_0,
		sarama.V3_6_0_0, sarama.MaxVersion} {
		as(version, os.Args[1])
	}
}
