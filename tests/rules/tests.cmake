hone_test(test_rules test_rules.c fixture.c)
