import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Names X.500 names as Java does, and maps them as Kafka does; see principals.py for the JSON. */
public class Principals {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        JsonNode asked = JSON.readTree(System.in);
        ObjectNode answers = JSON.createObjectNode();
        ArrayNode names = answers.putArray("names");
        for (JsonNode name : asked.get("names")) {
            names.add(new X500Principal(HexFormat.of().parseHex(name.asText())).getName());
        }
        ArrayNode mapped = answers.putArray("mapped");
        for (JsonNode each : asked.get("mapped")) {
            mapped.add(map(each.get(0).asText(), each.get(1).asText()));
        }
        System.out.write(JSON.writeValueAsBytes(answers));
        System.out.flush();
    }

    static String map(String rules, String name) {
        try {
            return "name " + SslPrincipalMapper.fromRules(rules).getName(name);
        } catch (SslPrincipalMapper.NoMatchingRule error) {
            return "no rule";
        } catch (Exception error) {
            return "invalid";
        }
    }
}
