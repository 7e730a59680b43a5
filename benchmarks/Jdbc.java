import java.sql.*;
import java.util.Properties;

/** How fast a Java program reads a large result: prints the milliseconds of the best of several runs, for each way. */
public class Jdbc {
    static long read(Connection con, String sql, int fetchSize) throws SQLException {
        long start = System.nanoTime(), sum = 0;
        try (Statement statement = con.createStatement()) {
            statement.setFetchSize(fetchSize);
            try (ResultSet found = statement.executeQuery(sql)) {
                while (found.next()) sum += found.getLong(1) + found.getLong(2) + found.getString(3).length() + (long) found.getDouble(4);
            }
        }
        if (sum == 0) throw new IllegalStateException("nothing was read");
        return (System.nanoTime() - start) / 1_000_000;
    }

    public static void main(String[] told) throws Exception {
        Properties who = new Properties();
        who.put("user", "ann");
        who.put("password", told[1]);
        try (Connection con = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + told[0] + "/b", who)) {
            con.setAutoCommit(false); // without a transaction the driver takes no rows bit by bit
            for (int fetchSize : new int[] {0, 10_000}) {
                long best = Long.MAX_VALUE;
                for (int time = 0; time < 5; time++) best = Math.min(best, read(con, told[2], fetchSize));
                System.out.println((fetchSize == 0 ? "at once " : "with fetch size " + fetchSize + " ") + best);
            }
        }
    }
}
