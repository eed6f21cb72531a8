;;; contexture-install-tests.el --- The server is downloaded  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A web server in this Emacs has the program: whole, cut off, altered,
;; or not at all.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-doctor)

(defconst contexture-install-test-program
  (concat "#!/bin/sh\necho contexture " contexture--version "\n# \0\xff\r\n")
  "What is downloaded: bytes that run.")

(defun contexture-install-test-serve (head body)
  "Serve HEAD and BODY, once, to whoever asks; return the process that listens."
  (make-network-process
   :name "install-test" :server t :host "127.0.0.1" :service t :family 'ipv4
   :coding 'binary :noquery t :sentinel #'ignore
   :filter (lambda (process _)
             (process-send-string
              process (encode-coding-string
                       (concat "HTTP/1.1 " head "\r\nConnection: close\r\n\r\n" body)
                       'binary))
             (delete-process process))))

(defun contexture-install-test-length (text)
  "Return the first line and the length of an answer with TEXT."
  (format "200 OK\r\nContent-Length: %d" (string-bytes text)))

(defmacro contexture-install-test-with (head body &rest rest)
  "Run REST where the address of the program answers with HEAD and BODY.
`asked' has the questions that the user was asked and agreed to."
  (declare (indent 2) (debug t))
  `(llm-ert-with-files '(("bin/" . ""))
     :project nil
     (let* ((listening (contexture-install-test-serve ,head ,body))
            (contexture-install--curl (butlast contexture-install--curl 2))
            (process-environment
             `(,(concat "XDG_DATA_HOME=" llm-ert-directory "data") "no_proxy=*"
               ,@process-environment))
            (asked nil)
            (contexture-server-command nil)
            (contexture-install--releases
             (format "http://127.0.0.1:%d/" (process-contact listening :service)))
            (contexture-install--checksums
             (list (cons (contexture-install--system system-configuration)
                         (secure-hash 'sha256 contexture-install-test-program)))))
       (unwind-protect
           (cl-letf (((symbol-function 'y-or-n-p)
                      (lambda (prompt) (push prompt asked))))
             ,@rest)
         (contexture-install--stop)
         (delete-process listening)))))

(defun contexture-install-test-refuses (regexp)
  "Check that a download ends in a message like REGEXP, and installs nothing."
  (contexture-test-message (concat regexp ".*; nothing was installed")
    (contexture-install-server))
  (should-not (directory-files-recursively llm-ert-directory ""))
  (should-not contexture-install--download))

(ert-deftest contexture-install-puts-the-program-outside-of-the-package-by-version ()
  (let ((program contexture-install-test-program))
    (contexture-install-test-with (contexture-install-test-length program) program
      (contexture-test-message "Installed Contexture.s server: .*/server-[0-9.]+/contexture"
        (contexture-test-at-once (contexture-install-server)))
      (should (string-match-p
               (concat "Download http://127.*/contexture-" contexture--version
                       "-[a-z0-9_]+-[a-z]+, .*install it as .*data/contexture/server-"
                       (regexp-quote contexture--version) "/contexture")
               (car asked)))
      (should (equal (directory-files-recursively llm-ert-directory "")
                     (list (contexture--installed-server))))
      (should (equal (with-temp-buffer
                       (set-buffer-multibyte nil)
                       (insert-file-contents-literally (contexture--installed-server))
                       (buffer-string))
                     program))
      (let ((contexture--directory (concat llm-ert-directory "elisp/")))
        (should (equal (contexture--find-server) (contexture--installed-server)))
        (should-not (string-prefix-p contexture--directory (contexture--installed-server)))
        (let ((contexture--version "9.9.9"))
          (should-not (file-exists-p (contexture--installed-server))))))))

(ert-deftest contexture-install-finds-a-program-beside-an-installed-package-only ()
  (llm-ert-with-files '(("bin/contexture" . ""))
    (let ((program (concat llm-ert-directory "bin/contexture"))
          (exec-path nil))
      (set-file-modes program #o700)
      (pcase-dolist (`(,folder . ,found) '(("share/emacs/site-lisp/contexture/" . t)
                                           ("src/a/contexture/elisp/" . nil)
                                           ("emacs.d/elpa/a/contexture-0.1.0/" . nil)))
        (let ((contexture--directory (concat llm-ert-directory folder)))
          (should (eq found (equal program (ignore-errors (contexture--find-server))))))))))

(ert-deftest contexture-install-never-installs-if-it-must-not ()
  (contexture-install-test-with "200 OK" ""
    (let ((contexture-install 'never))
      (contexture-test-user-error "nothing is installed" (contexture-install-server))
      (contexture-test-user-error "nothing is installed" (contexture-install-server t))
      (should-not asked))))

(ert-deftest contexture-install-gives-a-download-a-limit-of-time ()
  (contexture-install-test-with "200 OK" ""
    (let (command)
      (cl-letf (((symbol-function 'make-process)
                 (lambda (&rest plist) (setq command (plist-get plist :command)) nil)))
        (contexture-install-server))
      (should (equal "600" (cadr (member "--max-time" command))))
      (should (member "--max-filesize" command))
      (should (equal '("--proto" "=https")
                     (last (default-toplevel-value 'contexture-install--curl) 2))))))

(ert-deftest contexture-install-refuses-a-program-that-is-cut-off ()
  (let ((program contexture-install-test-program))
    (contexture-install-test-with (contexture-install-test-length program)
        (substring program 0 -1)
      (contexture-install-test-refuses "download failed: .*bytes"))
    (contexture-install-test-with "200 OK" (substring program 0 -1)
      (contexture-install-test-refuses "damaged or altered"))))

(ert-deftest contexture-install-refuses-a-program-that-was-altered ()
  (let ((program (string-replace "echo" "Echo" contexture-install-test-program)))
    (contexture-install-test-with (contexture-install-test-length program) program
      (contexture-install-test-refuses "damaged or altered"))))

(ert-deftest contexture-install-says-that-a-download-failed ()
  (contexture-install-test-with "404 Not Found\r\nContent-Length: 4" "none"
    (contexture-install-test-refuses "download failed: The requested URL returned error: 404"))
  (contexture-install-test-with "200 OK" ""
    (delete-process listening)
    (contexture-install-test-refuses "download failed: Failed to connect")))

(ert-deftest contexture-install-keeps-what-was-there-if-the-program-does-not-run ()
  (let ((contexture-install-test-program "#!/bin/sh\necho no such library\nexit 127\n"))
    (contexture-install-test-with
        (contexture-install-test-length contexture-install-test-program)
        contexture-install-test-program
      (contexture-install-test-refuses "does not run here: 127")
      (llm-ert-write-file
       (file-relative-name (contexture--installed-server) llm-ert-directory) "old")
      (contexture-test-message "does not run here: 127" (contexture-install-server))
      (should (equal (directory-files-recursively llm-ert-directory "")
                     (list (contexture--installed-server)))))))

;;;; Whatever is delivered

(defun contexture-install-test-delivered (program)
  "Return some of PROGRAM, or what may come in its place."
  (let ((place (random (length program))))
    (pcase (random 6)
      (0 program)
      (1 (substring program 0 place))
      (2 (let ((altered (copy-sequence program)))
           (aset altered place (logxor 1 (aref altered place)))
           altered))
      (3 (concat program (make-string (1+ (random 9)) ?x)))
      (4 "<html>Sign in to this network</html>")
      (5 (concat (substring program place) (substring program 0 place))))))

(defun contexture-install-test-head (body)
  "Return the head of some answer with BODY."
  (pcase (random 7)
    (0 "404 Not Found")
    (1 "503 Service Unavailable\r\nRetry-After: 9")
    (2 "302 Found\r\nLocation: http://127.0.0.1:1/")
    (3 "200 OK")
    (4 (format "200 OK\r\nContent-Length: %d" (+ 1 (random 9) (length body))))
    (_ (format "200 OK\r\nContent-Length: %d" (length body)))))

(defun contexture-install-test-before (where)
  "Put something that may be at WHERE before, and return what it is."
  (make-directory (file-name-directory where) t)
  (pcase (random 5)
    (0 (write-region "old" nil where nil 'silent) 'file)
    (1 (write-region "half" nil (concat where ".new") nil 'silent) 'half)
    (2 (make-directory where) 'folder)
    (3 (make-symbolic-link "nowhere" where) 'link)
    (_ 'nothing)))

(defun contexture-install-test-listing ()
  "Return the names below the test's folder, with what is there."
  (mapcar (lambda (file)
            (list file (file-symlink-p file)
                  (and (file-regular-p file)
                       (with-temp-buffer
                         (set-buffer-multibyte nil)
                         (insert-file-contents-literally file)
                         (buffer-string)))))
          (cl-remove-if (apply-partially #'string-suffix-p ".new")
                        (directory-files-recursively llm-ert-directory "" t))))

(ert-deftest contexture-install-installs-the-program-or-changes-nothing ()
  (random "downloads")
  (let ((program contexture-install-test-program)
        (installed 0))
    (dotimes (_ 60)
      (let* ((body (contexture-install-test-delivered program))
             (head (contexture-install-test-head body)))
        (contexture-install-test-with head body
          (let* ((where (contexture--installed-server))
                 (before (contexture-install-test-before where))
                 (there (contexture-install-test-listing))
                 (good (and (equal body program) (string-prefix-p "200" head)
                            (string-match-p (format "OK\\'\\|: %d\\'" (length body)) head)
                            (not (eq before 'folder))))
                 (case (list head body before)))
            (contexture-test-message (if good "Installed Contexture.s server"
                                       "; nothing was installed")
              (contexture-install-server))
            (should (equal (list case nil nil)
                           (list case contexture-install--download contexture--probes)))
            (should (equal (list case nil)
                           (list case (file-exists-p (concat where ".new")))))
            (if (not good)
                (should (equal (cons case there)
                               (cons case (contexture-install-test-listing))))
              (cl-incf installed)
              (should (file-executable-p where))
              (should (equal (list case (list (list where nil program)))
                             (list case (cl-remove-if (lambda (it) (file-directory-p (car it)))
                                                      (contexture-install-test-listing))))))))))
    (should (< 0 installed 30))))

(ert-deftest contexture-install-asks-before-it-does-anything ()
  (contexture-install-test-with "200 OK" ""
    (cl-letf (((symbol-function 'y-or-n-p) #'ignore)
              ((symbol-function 'make-process) (lambda (&rest _) (ert-fail "fetched")))
              ((symbol-function 'compilation-start) (lambda (&rest _) (ert-fail "built"))))
      (contexture-install-server)
      (let ((exec-path (list (concat llm-ert-directory "bin"))))
        (llm-ert-write-file "bin/cargo" "")
        (set-file-modes "bin/cargo" #o700)
        (contexture-install-server t)))))

(ert-deftest contexture-install-offers-to-build-where-there-is-no-program ()
  (contexture-install-test-with "200 OK" ""
    (let ((contexture-install--checksums nil)
          (exec-path (list (concat llm-ert-directory "bin")))
          run)
      (contexture-test-user-error "No release has a program .*install Rust"
        (contexture-install-server))
      (llm-ert-write-file "bin/cargo" "")
      (set-file-modes "bin/cargo" #o700)
      (cl-letf (((symbol-function 'compilation-start)
                 (lambda (command &rest _) (setq run command))))
        (contexture-install-server))
      (should (string-prefix-p "cargo install --locked" run))
      (should (string-match-p (regexp-quote run) (car asked))))))

(ert-deftest contexture-install-knows-systems ()
  (dolist (case '(("x86_64-pc-linux-gnu" . "x86_64-linux")
                  ("aarch64-unknown-linux-gnu" . "aarch64-linux")
                  ("aarch64-apple-darwin23.1.0" . "aarch64-darwin")
                  ("x86_64-unknown-linux-musl" . "x86_64-linux")
                  ("x86_64-redhat-linux-gnu" . "x86_64-linux")
                  ("amd64-pc-linux-gnu" . "x86_64-linux")
                  ("arm64-apple-darwin24.0.0" . "aarch64-darwin")
                  ("x86_64-apple-darwin19.6.0" . "x86_64-darwin")
                  ("aarch64-unknown-linux-android" . nil)
                  ("x86_64-pc-linux-gnux32" . nil)
                  ("i686-pc-linux-gnu" . nil)
                  ("riscv64-unknown-linux-gnu" . nil)
                  ("x86_64-unknown-freebsd14.0" . nil)
                  ("x86_64-w64-mingw32" . nil)))
    (should (equal (contexture-install--system (car case)) (cdr case)))))

(ert-deftest contexture-install-knows-every-system-by-its-machine-and-its-kernel ()
  (pcase-dolist (`(,machine . ,program) '(("x86_64" . "x86_64") ("amd64" . "x86_64")
                                          ("aarch64" . "aarch64") ("arm64" . "aarch64")
                                          ("i686") ("armv7l") ("powerpc64le") ("x86_64h")
                                          ("aarch64_be") ("s390x") ("X86_64")))
    (dolist (vendor '("-" "-pc-" "-unknown-" "-suse-" "-apple-" "-alpine-"))
      (pcase-dolist (`(,system . ,kernel) '(("linux" . "linux") ("linux-gnu" . "linux")
                                            ("linux-musl" . "linux") ("darwin" . "darwin")
                                            ("darwin21.6.0" . "darwin") ("linux-gnux32")
                                            ("linux-gnu_ilp32") ("linux-android") ("freebsd13.2")
                                            ("openbsd7.4") ("cygwin") ("w64-mingw32") ("gnu")))
        (let ((name (concat machine vendor system)))
          (should (equal (list name (contexture-install--system name))
                         (list name (and program kernel (format "%s-%s" program kernel))))))))))

(ert-deftest contexture-install-takes-the-checksums-of-a-release ()
  (let* ((source (locate-library "contexture-doctor.el"))
         (root contexture-test-root)
         (sum (make-string 64 ?a)))
    (llm-ert-with-files '(("sums" . ""))
      :project nil
      (copy-file source "copy.el")
      (dotimes (_ 2)
        (llm-ert-write-file
         "sums" (format "%s  contexture-%s-x86_64-linux\n%s  contexture-0.0.9-other\n"
                        sum contexture--version sum))
        (should (= 0 (call-process (expand-file-name "scripts/checksums" root) nil nil nil
                                   "sums" "copy.el")))
        (with-temp-buffer
          (insert-file-contents "copy.el")
          (search-forward "(defvar contexture-install--checksums")
          (should (equal (cadr (read (current-buffer)))
                         (list (cons "x86_64-linux" sum))))))
      (llm-ert-write-file "sums" "none\n")
      (should (= 1 (call-process (expand-file-name "scripts/checksums" root) nil nil nil
                                 "sums" "copy.el"))))))

(ert-deftest contexture-install-is-offered-by-the-doctor ()
  (should (member (cons "Install it" #'contexture-install-server)
                  (let ((contexture-server-command nil))
                    (nthcdr 3 (contexture-doctor--no-program))))))

(provide 'contexture-install-tests)
;;; contexture-install-tests.el ends here
