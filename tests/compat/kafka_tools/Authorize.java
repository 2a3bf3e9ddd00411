import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Runs Kafka's StandardAuthorizer on the clusters of standard input; see authorizer.py for the JSON. */
public class Authorize {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode clusters = answer.putArray("clusters");
        for (JsonNode cluster : JSON.readTree(System.in)) {
            clusters.add(answer(cluster));
        }
        ObjectNode operations = answer.putObject("operations");
        for (ResourceType type : ResourceType.values()) {
            if (type != ResourceType.ANY && type != ResourceType.UNKNOWN) {
                ArrayNode names = operations.putArray(SecurityUtils.resourceTypeName(type));
                AclEntry.supportedOperations(type).forEach(each -> names.add(SecurityUtils.operationName(each)));
            }
        }
        System.out.println(JSON.writeValueAsString(answer));
    }

    static ObjectNode answer(JsonNode cluster) throws Exception {
        StandardAuthorizer authorizer = authorizer(cluster);
        ObjectNode answers = JSON.createObjectNode();
        ArrayNode allowed = answers.putArray("allowed");
        for (JsonNode question : cluster.get("questions")) {
            allowed.add(isAllowed(authorizer, question));
        }
        ArrayNode found = answers.putArray("found");
        for (JsonNode filter : cluster.get("filters")) {
            ArrayNode bindings = found.addArray();
            authorizer.acls(filter(filter)).forEach(each -> bindings.addArray()
                .add(each.pattern().resourceType().code())
                .add(each.pattern().name())
                .add(each.pattern().patternType().code())
                .add(each.entry().principal())
                .add(each.entry().host())
                .add(each.entry().operation().code())
                .add(each.entry().permissionType().code()));
        }
        return answers;
    }

    static StandardAuthorizer authorizer(JsonNode cluster) {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of(
            "node.id", "1",
            StandardAuthorizer.SUPER_USERS_CONFIG, cluster.get("super_users").asText(),
            StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, cluster.get("allow_everyone").asText()));
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        for (JsonNode acl : cluster.get("acls")) {
            acls.put(Uuid.randomUuid(), new StandardAcl(
                ResourceType.fromCode((byte) acl.get(0).asInt()),
                acl.get(1).asText(),
                PatternType.fromCode((byte) acl.get(2).asInt()),
                acl.get(3).asText(),
                acl.get(4).asText(),
                AclOperation.fromCode((byte) acl.get(5).asInt()),
                AclPermissionType.fromCode((byte) acl.get(6).asInt())));
        }
        authorizer.loadSnapshot(acls);
        authorizer.completeInitialLoad();
        return authorizer;
    }

    static boolean isAllowed(StandardAuthorizer authorizer, JsonNode question) throws Exception {
        AuthorizableRequestContext client = client(question.get(0).asText(), question.get(1).asText());
        AclOperation operation = AclOperation.fromCode((byte) question.get(2).asInt());
        ResourceType type = ResourceType.fromCode((byte) question.get(3).asInt());
        JsonNode name = question.get(4);
        if (name.isNull()) {
            return authorizer.authorizeByResourceType(client, operation, type) == AuthorizationResult.ALLOWED;
        }
        ResourcePattern resource = new ResourcePattern(type, name.asText(), PatternType.LITERAL);
        Action action = new Action(operation, resource, 1, false, false);
        return authorizer.authorize(client, List.of(action)).get(0) == AuthorizationResult.ALLOWED;
    }

    static AclBindingFilter filter(JsonNode filter) {
        return new AclBindingFilter(
            new ResourcePatternFilter(
                ResourceType.fromCode((byte) filter.get(0).asInt()),
                filter.get(1).textValue(),
                PatternType.fromCode((byte) filter.get(2).asInt())),
            new AccessControlEntryFilter(
                filter.get(3).textValue(),
                filter.get(4).textValue(),
                AclOperation.fromCode((byte) filter.get(5).asInt()),
                AclPermissionType.fromCode((byte) filter.get(6).asInt())));
    }

    static AuthorizableRequestContext client(String principal, String host) throws Exception {
        KafkaPrincipal parsed = SecurityUtils.parseKafkaPrincipal(principal);
        InetAddress address = InetAddress.getByName(host);
        return new AuthorizableRequestContext() {
            public String listenerName() {
                return "PLAINTEXT";
            }

            public SecurityProtocol securityProtocol() {
                return SecurityProtocol.PLAINTEXT;
            }

            public KafkaPrincipal principal() {
                return parsed;
            }

            public InetAddress clientAddress() {
                return address;
            }

            public int requestType() {
                return 0;
            }

            public int requestVersion() {
                return 0;
            }

            public String clientId() {
                return "";
            }

            public int correlationId() {
                return 0;
            }
        };
    }
}
