import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's newest clients, against the broker that the first argument names: prints what they find, a fact a line. */
public class NewestClients {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> cluster = Map.of("bootstrap.servers", arguments[0]);
        String in = arguments[1] + "-in", out = arguments[1] + "-out", group = arguments[1] + "-group";
        try (Admin admin = Admin.create(cluster)) {
            var features = admin.describeFeatures().featureMetadata().get();
            var levels = new TreeMap<String, Short>();
            features.finalizedFeatures().forEach((name, range) -> levels.put(name, range.maxVersionLevel()));
            System.out.println("finalized " + levels);
            System.out.println("unchanged " + outcome(update(admin, (short) 1, UpgradeType.UPGRADE)));
            System.out.println("downgraded " + outcome(update(admin, (short) 0, UpgradeType.UNSAFE_DOWNGRADE)));
            var quorum = admin.describeMetadataQuorum().quorumInfo().get();
            System.out.println("quorum " + quorum.leaderId() + " " + (quorum.leaderEpoch() > 0) + " "
                + quorum.voters().stream().map(voter -> voter.replicaId()).toList() + " "
                + quorum.nodes().values().stream().map(node -> node.endpoints().size()).toList());
            admin.createTopics(List.of(new NewTopic(in, 1, (short) 1), new NewTopic(out, 1, (short) 1))).all().get();
        }
        Map<String, Object> producing = Map.of("bootstrap.servers", arguments[0], "transactional.id", arguments[1]);
        Map<String, Object> consuming = Map.of(
            "bootstrap.servers", arguments[0], "group.id", group, "group.protocol", "consumer",
            "auto.offset.reset", "earliest", "enable.auto.commit", false);
        var text = new StringSerializer();
        try (var producer = new KafkaProducer<>(producing, text, text);
             var consumer = new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer());
             Admin admin = Admin.create(cluster)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(in, "one"));
            producer.commitTransaction();
            consumer.subscribe(List.of(in));
            ConsumerRecords<String, String> records = ConsumerRecords.empty();
            for (int attempt = 0; attempt < 300 && records.isEmpty(); attempt++) {
                records = consumer.poll(Duration.ofMillis(100));
            }
            producer.beginTransaction();
            for (var record : records) {
                producer.send(new ProducerRecord<>(out, record.value() + " copied"));
            }
            var offsets = Map.of(new TopicPartition(in, 0), new OffsetAndMetadata(1));
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
            System.out.println("committed " + admin.listConsumerGroupOffsets(group)
                .partitionsToOffsetAndMetadata().get().get(new TopicPartition(in, 0)).offset());
            System.out.println("deleted " + outcome(admin.deleteConsumerGroups(List.of(group)).all()));
        }
        try (Admin admin = Admin.create(cluster)) {
            System.out.println("deleted " + outcome(admin.deleteConsumerGroups(List.of(group)).all()));
        }
    }

    static KafkaFuture<Void> update(Admin admin, short level, UpgradeType type) {
        return admin.updateFeatures(
            Map.of("group.version", new FeatureUpdate(level, type)), new UpdateFeaturesOptions()).all();
    }

    static String outcome(KafkaFuture<Void> future) throws InterruptedException {
        try {
            future.get();
            return "done";
        } catch (ExecutionException failure) {
            return failure.getCause().getClass().getSimpleName() + ": " + failure.getCause().getMessage();
        }
    }
}
