hone_test(test_base test_base.c)
hone_test(test_files test_files.c)
hone_test(test_text test_text.c)
hone_test(test_registry test_registry.c)
