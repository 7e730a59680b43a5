-- The stencil in a file that `sdc_export` wrote, as macros over ordinary aggregates: these and the tables are all there is.
--
-- The numbers of the inner cells there are not the original ones. They are drawn at random modulo the prime 2^61 - 1, so
-- that they add up to the true number over every sum that follows from published cells, and to nothing in particular over
-- any other. Numbers with decimals are kept as DECIMAL, in steps of their last digit.

CREATE MACRO _sdc_prime() AS 2305843009213693951::HUGEINT;

CREATE MACRO _sdc_balanced(v) AS CASE WHEN v > _sdc_prime() // 2 THEN v - _sdc_prime() ELSE v END;

CREATE MACRO sdc_is_open(stencil, filter := true) AS
    CASE
        WHEN count(CASE WHEN filter THEN 1 END) <> count(CASE WHEN filter THEN stencil END)
            THEN error('an inner cell without a stencil')
        ELSE coalesce(sum(CASE WHEN filter THEN stencil END) % _sdc_prime() = 0, true)
    END;

CREATE MACRO sdc_open_count(n, stencil, filter := true) AS
    CASE
        WHEN sdc_is_open(stencil, filter := filter)
            THEN _sdc_balanced(coalesce(sum(CASE WHEN filter THEN n END), 0)::HUGEINT % _sdc_prime())::BIGINT
    END;

CREATE MACRO sdc_open_sum(y, stencil, filter := true) AS
    CASE
        WHEN sdc_is_open(stencil, filter := filter)
            THEN _sdc_balanced(
                    replace(coalesce(sum(CASE WHEN filter THEN y END), 0)::VARCHAR, '.', '')::HUGEINT % _sdc_prime())
                / 10.0 ** coalesce(try_cast(regexp_extract(typeof(sum(y)), ',(\d+)', 1) AS INTEGER), 0)
    END;
