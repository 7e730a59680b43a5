-- Texts: how much of what should be masked is masked.

CREATE OR REPLACE MACRO _sdc_as_words(value) AS ' ' || trim(regexp_replace(lower(value), '[^\p{L}\p{M}\p{N}_]+', ' ', 'g')) || ' ';
CREATE OR REPLACE MACRO _sdc_has_term(value, term) AS contains(_sdc_as_words(value), _sdc_as_words(term));
CREATE OR REPLACE MACRO _sdc_terms_in(value, terms) AS
    list_filter(list_distinct(terms), lambda term: trim(_sdc_as_words(term)) <> '' AND _sdc_has_term(value, term));

--| sdc_text_mask_recall(original, masked, terms) -> STRUCT
--| How many of the terms that should be masked in a text are gone.
--|
--| A term counts if the text has it, in capital or small letters, as whole words; it is gone if the masked text has it nowhere. Add up
--| `tp` and `fn` over documents, and divide. A high recall says little of what the other words still tell: see `sdc_text_risk`.
--|
--| @arg original VARCHAR: the text before
--| @arg masked VARCHAR: the text after
--| @arg terms VARCHAR[]: what should be masked, as somebody has marked it
--| @column tp BIGINT: terms that are gone
--| @column fn BIGINT: terms that are still there
--| @column recall DOUBLE: tp / (tp + fn); NULL: the text has none of them
--| @example
--| SELECT r.tp, r.fn, r.recall
--| FROM (SELECT sdc_text_mask_recall('Anna Rossi lives in Rome.', '*** Rossi lives in ***.', ['Anna', 'Rossi', 'Rome', 'Oslo']) AS r);
--| @output
--| tp | fn |             recall
--| ---+----+-------------------
--|  2 |  1 | 0.6666666666666666
--| @source Manzanares-Salor, Sánchez & Lison (2022), PSD
CREATE OR REPLACE MACRO sdc_text_mask_recall(original, masked, terms) AS
    struct_pack(
        tp := len(list_filter(_sdc_terms_in(original, terms), lambda term: NOT _sdc_has_term(masked, term)))::BIGINT,
        fn := len(list_filter(_sdc_terms_in(original, terms), lambda term: _sdc_has_term(masked, term)))::BIGINT,
        recall := len(list_filter(_sdc_terms_in(original, terms), lambda term: NOT _sdc_has_term(masked, term)))
            / nullif(len(_sdc_terms_in(original, terms)), 0)
    );
