import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Runs Kafka's server-side assignors on the groups of standard input; see assignors.py for the JSON. */
public class Assign {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode question : JSON.readTree(System.in)) {
            answers.add(answer(question));
        }
        System.out.println(JSON.writeValueAsString(answers));
    }

    static ObjectNode answer(JsonNode question) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        question.get("members").fields().forEachRemaining(entry -> {
            MemberSubscriptionAndAssignmentImpl member = member(entry.getValue());
            members.put(entry.getKey(), member);
            subscriptions.add(member.subscribedTopicIds());
            member.partitions().forEach((topic, held) -> held.forEach(partition ->
                owners.computeIfAbsent(topic, any -> new HashMap<>()).put(partition, entry.getKey())));
        });
        SubscriptionType type =
            subscriptions.size() <= 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        PartitionAssignor assignor =
            question.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        ObjectNode assigned = JSON.createObjectNode();
        assignor.assign(new GroupSpecImpl(members, type, owners), describer(question.get("partitions")))
            .members()
            .forEach((name, assignment) -> write(assigned.putObject(name), assignment.partitions()));
        return assigned;
    }

    static MemberSubscriptionAndAssignmentImpl member(JsonNode node) {
        Set<Uuid> topics = new HashSet<>();
        node.get("topics").forEach(topic -> topics.add(Uuid.fromString(topic.asText())));
        Map<Uuid, Set<Integer>> owned = new HashMap<>();
        node.get("owned").fields().forEachRemaining(entry -> {
            Set<Integer> partitions = new HashSet<>();
            entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
            owned.put(Uuid.fromString(entry.getKey()), partitions);
        });
        return new MemberSubscriptionAndAssignmentImpl(
            Optional.empty(),
            Optional.ofNullable(node.get("instance_id").textValue()),
            topics,
            new Assignment(Collections.unmodifiableMap(owned)));
    }

    static SubscribedTopicDescriber describer(JsonNode partitions) {
        return new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) {
                return partitions.path(topic.toString()).asInt(-1);
            }

            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
    }

    static void write(ObjectNode node, Map<Uuid, Set<Integer>> assignment) {
        assignment.forEach((topic, held) -> {
            ArrayNode partitions = node.putArray(topic.toString());
            new TreeSet<>(held).forEach(partitions::add);
        });
    }
}
