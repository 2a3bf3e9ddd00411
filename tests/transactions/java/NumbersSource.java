import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A source of numbers. Task i of n writes i, i + n, i + 2n and so on below `count`, ten in each poll.
 *
 * With transaction.boundary=connector it ends a transaction after every ten numbers of a task, and aborts every
 * fourth one: those numbers, with (number / n / 10) % 4 == 3, must never be seen.
 */
public final class NumbersSource extends SourceConnector {
    static final int GROUP = 10;

    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> settings) {
        this.settings = settings;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return NumbersTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return IntStream.range(0, maxTasks).mapToObj(index -> {
            Map<String, String> task = new java.util.HashMap<>(settings);
            task.put("index", Integer.toString(index));
            task.put("tasks", Integer.toString(maxTasks));
            return task;
        }).toList();
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where the numbers go")
            .define("count", ConfigDef.Type.INT, ConfigDef.Importance.HIGH, "how many numbers there are")
            .define("pause.ms", ConfigDef.Type.INT, 0, ConfigDef.Importance.LOW, "the time between two polls");
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> settings) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> settings) {
        return ConnectorTransactionBoundaries.SUPPORTED;
    }

    @Override
    public String version() {
        return "1";
    }

    public static final class NumbersTask extends SourceTask {
        private String topic;
        private int count;
        private int index;
        private int tasks;
        private int pauseMs;
        private int next; // the position of the next number of this task

        @Override
        public void start(Map<String, String> settings) {
            topic = settings.get("topic");
            count = Integer.parseInt(settings.get("count"));
            index = Integer.parseInt(settings.get("index"));
            tasks = Integer.parseInt(settings.get("tasks"));
            pauseMs = Integer.parseInt(settings.getOrDefault("pause.ms", "0"));
            Map<String, Object> stored = context.offsetStorageReader().offset(partition());
            next = stored == null ? 0 : ((Number) stored.get("next")).intValue();
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            List<SourceRecord> polled = new ArrayList<>();
            int first = next;
            while (polled.size() < GROUP && number(next) < count) {
                int number = number(next++);
                polled.add(new SourceRecord(partition(), Map.of("next", next), topic, null,
                    Schema.STRING_SCHEMA, "task-" + index, Schema.STRING_SCHEMA, Integer.toString(number)));
            }
            Thread.sleep(polled.isEmpty() ? 100 : pauseMs);
            if (polled.isEmpty()) {
                return null;
            }
            if (context.transactionContext() != null) {
                SourceRecord last = polled.get(polled.size() - 1);
                if (first / GROUP % 4 == 3) {
                    context.transactionContext().abortTransaction(last);
                } else {
                    context.transactionContext().commitTransaction(last);
                }
            }
            return polled;
        }

        private int number(int position) {
            return position * tasks + index;
        }

        private Map<String, Object> partition() {
            return Map.of("task", index + " of " + tasks);
        }

        @Override
        public void stop() {
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
