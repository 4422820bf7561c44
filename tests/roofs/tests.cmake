hone_test(test_roofs test_roofs.c)
