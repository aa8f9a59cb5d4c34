module example.org/broken

go 1.24
