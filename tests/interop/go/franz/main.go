// franz-go against a broker: every codec, both group protocols, read-process-write, administration.
//
//	franz ADDRESS
//
// Prints a line for every step and ends with status 1 at the first that goes wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	perCodec = 1000
	codecs   = 5
	total    = perCodec * codecs
	patience = 60 * time.Second
)

var (
	address = os.Args[1]
	suffix  = fmt.Sprint(time.Now().UnixNano())
	topic   = "franz" + suffix
	out     = "franz-out" + suffix
)

func step(name string, run func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Printf("FAILED %s: %v\n", name, err)
		os.Exit(1)
	}
	fmt.Println("ok", name)
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address)}, options...)...)
	if err != nil {
		panic(err)
	}
	return made
}

func fromStart(options ...kgo.Opt) []kgo.Opt {
	return append(options, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

func records(topic string, count int) (made []*kgo.Record) {
	for i := range count {
		made = append(made, &kgo.Record{
			Topic:   topic,
			Key:     fmt.Append(nil, "key", i),
			Value:   []byte(strings.Repeat(fmt.Sprint("value", i), 20)),
			Headers: []kgo.RecordHeader{{Key: "header", Value: []byte("x")}},
		})
	}
	return made
}

// read polls until so many records have come, and then once more: none may follow.
func read(ctx context.Context, from *kgo.Client, count int) error {
	got := 0
	for got < count {
		fetches := from.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d records: %w", got, err)
		}
		got += fetches.NumRecords()
	}
	last, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	got += from.PollFetches(last).NumRecords()
	if got != count {
		return fmt.Errorf("%d records instead of %d", got, count)
	}
	return nil
}

func produce(ctx context.Context) error {
	for _, codec := range []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(),
		kgo.ZstdCompression(),
	} {
		producer := client(kgo.ProducerBatchCompression(codec))
		err := producer.ProduceSync(ctx, records(topic, perCodec)...).FirstErr()
		producer.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// classicGroup lets three static members share the topic until all of it is committed.
func classicGroup(balancer kgo.GroupBalancer) func(context.Context) error {
	return func(ctx context.Context) error {
		group := "franz-" + balancer.ProtocolName() + suffix
		reading, done := context.WithCancel(ctx)
		defer done()
		var members sync.WaitGroup
		var lock sync.Mutex
		got := 0
		for i := range 3 {
			members.Add(1)
			go func() {
				defer members.Done()
				member := client(fromStart(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
					kgo.Balancers(balancer), kgo.InstanceID(fmt.Sprint("instance", i)))...)
				defer member.Close()
				for reading.Err() == nil {
					fetches := member.PollFetches(reading)
					if member.CommitUncommittedOffsets(reading) != nil {
						continue
					}
					lock.Lock()
					if got += fetches.NumRecords(); got >= total {
						done()
					}
					lock.Unlock()
				}
			}()
		}
		members.Wait()
		if got < total {
			return fmt.Errorf("%d of %d records", got, total)
		}
		return lagIsNone(ctx, group)
	}
}

func lagIsNone(ctx context.Context, group string) error {
	lags, err := kadm.NewClient(client()).Lag(ctx, group)
	if err := errors.Join(err, lags.Error()); err != nil {
		return err
	}
	if lag := lags[group].Lag.Total(); lag != 0 {
		return fmt.Errorf("a lag of %d", lag)
	}
	return nil
}

// consumerGroup is the protocol of KIP-848, which this client hides behind a value of its context.
func consumerGroup(topics string, options ...kgo.Opt) func(context.Context) error {
	return func(ctx context.Context) error {
		group := "franz-848" + topics
		opted := context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)
		member := client(fromStart(append(options, kgo.WithContext(opted), kgo.ConsumerGroup(group),
			kgo.ConsumeTopics(topics))...)...)
		defer member.Close()
		if err := read(ctx, member, total); err != nil {
			return err
		}
		if err := member.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
		described, err := kadm.NewClient(client()).DescribeConsumerGroups(ctx, group)
		if err := errors.Join(err, described.Error()); err != nil {
			return err
		}
		if one := described[group]; one.State != "Stable" || len(one.Members) != 1 {
			return fmt.Errorf("%s with %d members", one.State, len(one.Members))
		}
		// Not by its lag: for that it asks with DescribeGroups, which knows classic groups only.
		committed, err := kadm.NewClient(client()).FetchOffsets(ctx, group)
		sum := int64(0)
		committed.Each(func(one kadm.OffsetResponse) { sum += one.At })
		if err := errors.Join(err, committed.Error()); err != nil || sum != total {
			return fmt.Errorf("committed %d: %w", sum, err)
		}
		return nil
	}
}

// exactlyOnce moves the topic, every third transaction of which is aborted and done again.
func exactlyOnce(ctx context.Context) error {
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(address),
		kgo.ConsumerGroup("franz-eos"+suffix), kgo.TransactionalID("franz"+suffix),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxBytes(20_000))
	if err != nil {
		return err
	}
	defer session.Close()
	for moved, round := 0, 1; moved < total; round++ {
		fetches := session.PollFetches(ctx)
		if err := errors.Join(fetches.Err(), session.Begin()); err != nil {
			return err
		}
		promise := kgo.AbortingFirstErrPromise(session.Client())
		fetches.EachRecord(func(one *kgo.Record) {
			session.Produce(ctx, &kgo.Record{Topic: out, Key: one.Key, Value: one.Value}, promise.Promise())
		})
		whole := promise.Err() == nil && round%3 != 0
		committed, err := session.End(ctx, kgo.TransactionEndTry(whole))
		if err != nil {
			return err
		}
		if committed {
			moved += fetches.NumRecords()
		}
	}
	return nil
}

func hanging(ctx context.Context) error {
	admin := kadm.NewClient(client())
	id := "franz-open" + suffix
	producer := client(kgo.TransactionalID(id))
	defer producer.Close()
	if err := producer.BeginTransaction(); err != nil {
		return err
	}
	if err := producer.ProduceSync(ctx, records(out, 10)...).FirstErr(); err != nil {
		return err
	}
	listed, err := admin.ListTransactions(ctx, nil, []string{"Ongoing"})
	if err != nil || listed[id].State != "Ongoing" {
		return fmt.Errorf("listed as %v: %w", listed[id], err)
	}
	described, err := admin.DescribeTransactions(ctx, id)
	if err != nil || described[id].State != "Ongoing" || len(described[id].Topics[out]) == 0 {
		return fmt.Errorf("described as %v: %w", described[id], err)
	}
	if _, err := admin.DescribeProducers(ctx, kadm.TopicsSet{out: {0: {}}}); err != nil {
		return err
	}
	return producer.EndTransaction(ctx, kgo.TryAbort)
}

func administration(ctx context.Context) error {
	admin := kadm.NewClient(client())
	after, err1 := admin.ListOffsetsAfterMilli(ctx, time.Now().Add(-time.Hour).UnixMilli(), topic)
	committed, err2 := admin.ListCommittedOffsets(ctx, out)
	highest, err3 := admin.ListMaxTimestampOffsets(ctx, topic)
	deleted, err4 := admin.DeleteRecords(ctx,
		kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 5}}})
	altered, err5 := admin.AlterTopicConfigs(ctx,
		[]kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("1000000")}}, topic)
	grown, err6 := admin.CreatePartitions(ctx, 2, out)
	_, err7 := admin.DescribeAllLogDirs(ctx, nil)
	_, err8 := admin.DescribeBrokerConfigs(ctx, 1)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, after.Error(),
		committed.Error(), highest.Error(), deleted.Error(), altered[0].Err, grown.Error()); err != nil {
		return err
	}
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return err
	}
	for _, one := range configs[0].Configs {
		if one.Key == "retention.ms" && one.MaybeValue() != "1000000" {
			return fmt.Errorf("retention.ms is %s", one.MaybeValue())
		}
	}
	groups, err := admin.DeleteGroups(ctx, "franz-eos"+suffix)
	if err := errors.Join(err, groups.Error()); err != nil {
		return err
	}
	topics, err := admin.DeleteTopics(ctx, topic, out)
	return errors.Join(err, topics.Error())
}

// replicas is how many a topic gets: VARVE_INTEROP_REPLICAS, or one.
func replicas() int16 {
	if found, err := strconv.ParseInt(os.Getenv("VARVE_INTEROP_REPLICAS"), 10, 16); err == nil {
		return int16(found)
	}
	return 1
}

func main() {
	step("create topics", func(ctx context.Context) error {
		made, err := kadm.NewClient(client()).CreateTopics(ctx, 6, replicas(), nil, topic, out)
		return errors.Join(err, made.Error())
	})
	step("produce in every codec", produce)
	step("read without a group", func(ctx context.Context) error {
		reader := client(fromStart(kgo.ConsumeTopics(topic))...)
		defer reader.Close()
		return read(ctx, reader, total)
	})
	for _, balancer := range []kgo.GroupBalancer{kgo.CooperativeStickyBalancer(),
		kgo.StickyBalancer(), kgo.RangeBalancer(), kgo.RoundRobinBalancer()} {
		step("three static members, "+balancer.ProtocolName(), classicGroup(balancer))
	}
	step("consumer group", consumerGroup(topic))
	step("consumer group by regular expression", consumerGroup("^"+topic+"$", kgo.ConsumeRegex()))
	step("read-process-write", exactlyOnce)
	step("an open transaction is found and aborted", hanging)
	step("read committed", func(ctx context.Context) error {
		reader := client(fromStart(kgo.ConsumeTopics(out), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
		defer reader.Close()
		return read(ctx, reader, total)
	})
	step("administration", administration)
}
