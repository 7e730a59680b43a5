import java.io.StringWriter;
import java.sql.*;
import java.util.Properties;
import org.postgresql.PGConnection;

/** What a JDBC program does with the gateway: prints a line for each thing that test_jdbc_odbc.py looks for. */
public class Jdbc {
    interface Listed {
        ResultSet ask(DatabaseMetaData about) throws SQLException;
    }

    static void list(DatabaseMetaData about, String name, Listed listed) throws SQLException {
        int rows = 0;
        try (ResultSet found = listed.ask(about)) {
            while (found.next()) rows++;
        }
        System.out.println(name + " " + rows);
    }

    public static void main(String[] told) throws Exception {
        Properties who = new Properties();
        who.put("user", "ann");
        who.put("password", told[1]);
        String url = "jdbc:postgresql://127.0.0.1:" + told[0] + "/register";
        try (Connection con = DriverManager.getConnection(url, who)) {
            DatabaseMetaData about = con.getMetaData();
            try (ResultSet found = about.getTables(null, null, "%", new String[] {"TABLE", "VIEW"})) {
                while (found.next()) System.out.println("table " + found.getString("TABLE_NAME") + ": " + found.getString("REMARKS"));
            }
            try (ResultSet found = about.getColumns(null, "public", "people", "%")) {
                while (found.next()) System.out.println("column " + found.getString("COLUMN_NAME") + " " + found.getString("TYPE_NAME"));
            }
            list(about, "catalogs", DatabaseMetaData::getCatalogs);
            list(about, "schemas", DatabaseMetaData::getSchemas);
            list(about, "keys", asked -> asked.getPrimaryKeys(null, "public", "people"));
            list(about, "imported", asked -> asked.getImportedKeys(null, "public", "people"));
            list(about, "indexes", asked -> asked.getIndexInfo(null, "public", "people", false, false));
            list(about, "functions", asked -> asked.getFunctions(null, null, "%"));
            list(about, "column privileges", asked -> asked.getColumnPrivileges(null, "public", "people", "%"));
            about.getTypeInfo().close();
            String counted = "SELECT count(*) AS n FROM people WHERE age > ? AND region <> ?";
            try (PreparedStatement statement = con.prepareStatement(counted)) {
                for (int time = 0; time < 8; time++) { // from the fifth time on the driver asks for binary answers
                    statement.setInt(1, 0);
                    statement.setString(2, "nowhere");
                    ResultSet found = statement.executeQuery();
                    found.next();
                    if (time % 7 == 0) System.out.println("counted " + found.getInt(1));
                }
            }
            try (PreparedStatement statement = con.prepareStatement("SELECT an_int FROM kinds WHERE a_date = ? AND a_bool = ?")) {
                statement.setDate(1, Date.valueOf("2020-02-29"));
                statement.setBoolean(2, true);
                ResultSet found = statement.executeQuery();
                System.out.println("by date " + found.next() + " " + found.getInt(1));
            }
            try (Statement statement = con.createStatement()) {
                statement.executeQuery("SELECT * FROM people");
            } catch (SQLException refused) {
                System.out.println("refused " + refused.getSQLState() + " " + refused.getMessage().substring(7, 13));
            }
            con.setAutoCommit(false);
            try (Statement statement = con.createStatement()) {
                statement.setFetchSize(1000);
                ResultSet found = statement.executeQuery("SELECT * FROM numbers");
                int rows = 0;
                while (found.next()) rows++;
                System.out.println("fetched " + rows);
            }
            con.commit();
            con.setAutoCommit(true);
            try (Statement statement = con.createStatement()) {
                statement.setQueryTimeout(1);
                statement.executeQuery("SELECT count(*) FROM numbers a JOIN numbers b ON a.n < b.n + 1 WHERE a.part + b.part <> 3");
            } catch (SQLException stopped) {
                System.out.println("stopped " + stopped.getSQLState());
            }
            StringWriter written = new StringWriter();
            long copied = con.unwrap(PGConnection.class).getCopyAPI().copyOut("COPY (SELECT n FROM numbers LIMIT 10) TO STDOUT", written);
            System.out.println("copied " + copied);
        }
        who.put("password", "wrong password");
        try {
            DriverManager.getConnection(url, who);
        } catch (SQLException refused) {
            System.out.println("login " + refused.getSQLState());
        }
    }
}
