import java.sql.*;
import java.util.Properties;

/** A JDBC program that comes, looks whether the connection is alive, and leaves. */
public class Comes {
    public static void main(String[] told) throws Exception {
        Properties who = new Properties();
        who.put("user", "ann");
        who.put("password", told[1]);
        try (Connection con = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + told[0] + "/register", who)) {
            if (!con.isValid(10)) throw new IllegalStateException("not valid");
            con.getMetaData().getSQLKeywords();
        }
    }
}
