;;; contexture-remote-tests.el --- Tests with a real server of SSH  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Files of a project on another machine, by TRAMP.  The machine is this
;; one, behind a real sshd, which runs for one connection, without a port,
;; with keys of the test's own.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-marks)
(require 'contexture-list)
(require 'contexture-mention)
(require 'contexture-sources)
(require 'dired)
(require 'tramp-sh)

(defun contexture-remote-tests--key (name)
  "Make a key with the file name NAME."
  (should (eql 0 (call-process "ssh-keygen" nil nil nil "-q" "-t" "ed25519" "-N" "" "-f" name))))

(defun contexture-remote-tests--sshd ()
  "Return a command that runs sshd for one connection, or nil if there is none."
  (when-let* ((sshd (let ((exec-path (append exec-path '("/usr/sbin" "/usr/local/sbin"))))
                      (executable-find "sshd"))))
    (let ((run (format "exec %s -i -f %s" sshd (expand-file-name "sshd_config"))))
      (if (or (/= 0 (user-uid)) (file-directory-p "/run/sshd")) run
        ;; The superuser's sshd wants this folder, and it is not ours to make.
        (format "exec unshare -m sh -c 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && %s'"
                run)))))

(defun contexture-remote-tests--set-up ()
  "Write the keys and settings into `default-directory'; return ssh's settings.
Return nil if there is no sshd."
  (when-let* ((command (and (executable-find "ssh") (executable-find "ssh-keygen")
                            (contexture-remote-tests--sshd))))
    (mapc #'contexture-remote-tests--key '("host" "user"))
    (copy-file "user.pub" "authorized_keys")
    (with-temp-file "sshd_config"
      (insert (format "HostKey %s\nAuthorizedKeysFile %s\n"
                      (expand-file-name "host") (expand-file-name "authorized_keys"))
              "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n"
              "PermitRootLogin prohibit-password\n"))
    ;; Its number, so that the connection can be cut.
    (with-temp-file "proxy"
      (insert "#!/bin/sh\necho $$ >>" (expand-file-name "pids") "\n" command "\n"))
    (set-file-modes "proxy" #o700)
    (with-temp-file "ssh_config"
      (insert (format "Host *\nProxyCommand %s\nIdentityFile %s\nUserKnownHostsFile %s\n"
                      (expand-file-name "proxy") (expand-file-name "user")
                      (expand-file-name "known"))
              "IdentitiesOnly yes\nStrictHostKeyChecking no\nBatchMode yes\nLogLevel ERROR\n"))
    (and (eql 0 (call-process "ssh" nil nil nil "-F" "ssh_config" "there" "true"))
         (expand-file-name "ssh_config"))))

(defmacro contexture-remote-tests--with-project (&rest body)
  "Run BODY, with a server, and a project behind SSH in the folder `root'.
The variable `local' is the folder's name on the other machine."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (let* ((folder (expand-file-name "ssh/" llm-ert-directory))
            (local (expand-file-name "p/" llm-ert-directory))
            (config (progn (make-directory folder)
                           (set-file-modes folder #o700)
                           (let ((default-directory folder))
                             (contexture-remote-tests--set-up)))))
       (unless config (ert-skip "There is no sshd"))
       (let* ((tramp-ssh-controlmaster-options (concat "-F " config))
              (tramp-persistency-file-name nil)
              (tramp-verbose 1)
              ;; Emacs itself would connect again, for the lock of what is typed in.
              (create-lockfiles nil)
              (vc-handled-backends nil)
              (contexture--remote-roots (make-hash-table :test #'equal))
              (root (concat "/ssh:there:" local)))
         (contexture-test-file "p/src/m.py" "def m():" "    return 1" "" "def n():" "    return 2")
         (contexture-test-file "p/tests/t.py" "def t():" "    m()")
         (make-directory (concat local ".git"))
         (unwind-protect (progn ,@body)
           (dolist (buffer (buffer-list))
             (when (string-prefix-p "/ssh:" (or (buffer-file-name buffer) ""))
               (with-current-buffer buffer (set-buffer-modified-p nil))
               (kill-buffer buffer)))
           (tramp-cleanup-all-connections))))))

(defmacro contexture-remote-tests--without-connecting (&rest body)
  "Run BODY while there is no connection, and check that none is made.
An error in the place of a connection would not do: our code may handle it."
  (declare (indent 0) (debug t))
  `(let (connected)
     (should-not (file-remote-p root nil t))
     (cl-letf (((symbol-function 'tramp-maybe-open-connection)
                (lambda (&rest arguments)
                  (push arguments connected)
                  (error "There is no connection"))))
       ,@body)
     (should-not connected)
     (should-not (file-remote-p root nil t))))

(defun contexture-remote-tests--contents ()
  "Return the texts of the items in this buffer's context."
  (mapcar (lambda (item) (plist-get item :content))
          (contexture-request 'list-items
                              (contexture--context-params (contexture-current-context)))))

(ert-deftest contexture-remote-a-project-is-one-context ()
  (contexture-remote-tests--with-project
    (setq contexture-add-to 'project)
    (let (contexts asked)
      (cl-letf* ((ask (symbol-function 'contexture--ask-remote-root))
                 ((symbol-function 'contexture--ask-remote-root)
                  (lambda () (push default-directory asked) (funcall ask))))
        (dolist (name '("src/m.py" "tests/t.py"))
          (contexture-test-visiting (concat root name)
            (dotimes (_ 2)
              (contexture-test-message "^Added" (contexture-add-region 1 10)))
            (should (equal (contexture-test-metadata
                            (car (last (contexture-test-items (contexture-adding-context))))
                            :project)
                           (list root)))
            (push (contexture-adding-context) contexts))))
      (should (equal (car contexts) (cadr contexts)))
      (should (equal (length asked) 2))
      (contexture-test-visiting (concat root "src/m.py")
        (should (equal (contexture-remote-tests--contents)
                       '("def m():\n" "def t():\n")))))))

(ert-deftest contexture-remote-items-follow-their-buffers ()
  (contexture-remote-tests--with-project
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (contexture-test-message "^Added" (contexture-add-file buffer-file-name))
      (goto-char (point-min))
      (contexture-test-message "^Added" (contexture-add-region (point) (line-beginning-position 3)))
      (insert "# new\n")
      (should (equal (contexture-remote-tests--contents)
                     (list (buffer-string) "def m():\n    return 1\n")))
      (let ((save-silently t)) (save-buffer))
      (goto-char (point-max))
      (insert "# end\n")
      (should (equal (car (contexture-remote-tests--contents)) (buffer-string))))))

(ert-deftest contexture-remote-text-that-was-never-saved-is-stale-without-its-buffer ()
  (contexture-remote-tests--with-project
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (goto-char (point-min))
      (insert "# typed\n")
      (contexture-test-message "^Added" (contexture-add-region 1 9))
      (let ((context (contexture-adding-context)))
        (set-buffer-modified-p t)
        (with-temp-buffer
          (let ((buffer (find-buffer-visiting (concat root "src/m.py"))))
            (cl-letf (((symbol-function 'yes-or-no-p) #'always))
              (kill-buffer buffer)))
          (let ((item (contexture-test-only-item context)))
            (should (equal (plist-get item :content) "# typed\n"))
            (should (equal (contexture-test-metadata item :stale)
                           '("its text was not saved")))))))))

(ert-deftest contexture-remote-text-without-its-buffer-is-what-was-saved-with-its-date ()
  (contexture-remote-tests--with-project
    (setq contexture-add-to 'project)
    (let ((file (concat root "src/m.py"))
          (save-silently t)
          context saved)
      (contexture-test-visiting file
        (contexture-test-message "^Added" (contexture-add-file file))
        (setq context (contexture-adding-context))
        (insert "# not saved\n")
        (contexture-test-settle)
        (revert-buffer t t)
        (contexture-test-settle)
        (goto-char (point-max))
        (insert "# end\n")
        (save-buffer)
        (setq saved (buffer-string))
        (should-not (plist-get (contexture-test-only-item context) :as-of)))
      (kill-buffer (find-buffer-visiting file))
      (contexture-test-settle)
      ;; Nobody looks at the file any more.
      (let ((item (contexture-test-only-item context)))
        (should (equal (plist-get item :content) saved))
        (should (eq (plist-get item :state) :fresh))
        (should (plist-get item :as-of))
        (should (contexture-list--dated-p item)))
      (contexture-test-visiting file
        (contexture-test-settle)
        (should-not (plist-get (contexture-test-only-item context) :as-of))))))

(ert-deftest contexture-remote-items-outlive-the-connection ()
  (contexture-remote-tests--with-project
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (contexture-test-message "^Added" (contexture-add-region 1 10))
      (insert "# typed\n")
      (tramp-cleanup-all-connections)
      (contexture-remote-tests--without-connecting
        (should (equal (contexture-remote-tests--contents) '("def m():\n")))
        (contexture-copy (contexture-current-context))
        (should (string-search "def m():" (current-kill 0)))
        (contexture-test-message "^Added" (contexture-add-region 1 5))))))

;;;; Directories, differences, names and errors

(defun contexture-remote-tests--repository (root local)
  "Make a repository of Git of ROOT, whose local name is LOCAL, with a commit."
  (let ((default-directory local))
    (contexture-test-file "p/.gitignore" "ignored.txt")
    (contexture-test-file "p/ignored.txt" "no")
    (delete-directory ".git" t)
    (dolist (arguments '(("init" "-q") ("add" ".")
                         ("-c" "user.name=a" "-c" "user.email=a@b" "commit" "-qm" "x")))
      (should (eql 0 (apply #'call-process "git" nil nil nil arguments))))
    root))

(defmacro contexture-remote-tests--exchanges (&rest body)
  "Run BODY and return the number of commands that TRAMP sent meanwhile."
  (declare (indent 0) (debug t))
  `(let ((count 0))
     (cl-letf* ((send (symbol-function 'tramp-send-command))
                ((symbol-function 'tramp-send-command)
                 (lambda (&rest arguments) (cl-incf count) (apply send arguments))))
       ,@body
       count)))

(ert-deftest contexture-remote-directories-are-added-over-the-connection ()
  (contexture-remote-tests--with-project
    (contexture-remote-tests--repository root local)
    (contexture-test-file "p/a b'c.txt" "blank é")
    (contexture-test-file "p/.env" "KEY=1")
    (contexture-test-file "p/src/m.py~" "old")
    (contexture-test-file "p/#m.py#" "old")
    (contexture-test-file "p/big.txt" (make-string (1+ contexture-tree--largest-remote) ?x))
    (let ((coding-system-for-write 'binary)) (write-region "\0\1" nil (concat local "bin") nil 'silent))
    (dotimes (n 60) (contexture-test-file (format "p/many/%02d.txt" n) (format "file %d" n)))
    (make-symbolic-link "/etc/passwd" (concat local "link.txt"))
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (goto-char (point-max))
      (insert "# typed")
      (contexture--layers)
      (let ((said nil) (sent 0))
        (setq sent (contexture-remote-tests--exchanges
                     (setq said (contexture-test-message "^Added" (contexture-add-directory root)))
                     (should-not contexture-tree--fetching)))
        ;; The names, and the texts, many at a time.
        (should (< sent 20))
        (should (string-match-p "63 files" said))
        (should (string-match-p "big.txt is too large" said))
        (should (string-match-p "bin is no text" said))
        ;; What is left out is named.
        (should (string-match-p "; 7 not added: .*#m.py# is a backup, .env is hidden, .* and 2 more" said)))
      (let ((texts (contexture-remote-tests--contents)))
        (should (member "blank é\n" texts))
        (should (member "file 59\n" texts))
        ;; What is open follows its buffer.
        (should (member (buffer-string) texts))
        (should-not (cl-find-if (lambda (text) (string-match-p "KEY\\|^no$\\|root:" text)) texts)))
      (insert "\n# more")
      (should (member (buffer-string) (contexture-remote-tests--contents)))
      ;; One addition, one undo.
      (contexture-test-message "." (contexture-undo))
      (should-not (contexture-remote-tests--contents))
      (contexture-test-message "^Added" (contexture-add-directory root 'listing))
      (should (string-match-p "^tests/t.py ([0-9]+ bytes)$" (car (contexture-remote-tests--contents)))))))

(ert-deftest contexture-remote-marks-in-dired-are-added-together ()
  (contexture-remote-tests--with-project
    (contexture-test-file "p/.env" "KEY=1")
    (setq contexture-add-to 'project)
    (let ((asked nil))
      (contexture-test-visiting (concat root "src/m.py")
        (let ((dired (dired-noselect root)))
          (with-current-buffer dired
            (dired-mark-files-regexp "\\.env\\'")
            (dired-mark-files-regexp "src\\'")
            (cl-letf (((symbol-function 'y-or-n-p) (lambda (text) (push text asked) t)))
              (contexture-test-message "^Added 1 file.*src is no file" (contexture-add-dwim)))
            (should (string-match-p "\\.env" (car asked)))
            (should (equal (contexture-remote-tests--contents) '("KEY=1\n"))))
          (kill-buffer dired))))))

(ert-deftest contexture-remote-differences-are-those-of-the-machine ()
  (contexture-remote-tests--with-project
    (contexture-remote-tests--repository root local)
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (goto-char (point-min))
      (insert "# new\n")
      (let ((save-silently t)) (save-buffer))
      (contexture-test-message "^Added the diff of src/m.py" (contexture-add-diff))
      (should (string-match-p "^\\+# new$" (car (last (contexture-remote-tests--contents)))))
      (contexture-test-message "^Added the diff of" (contexture-add-diff t)))))

(ert-deftest contexture-remote-names-come-after-at ()
  (contexture-remote-tests--with-project
    (contexture-remote-tests--repository root local)
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (let ((list (contexture-files--of (contexture-mention--root) nil)))
        (should (equal (contexture-mention--root) root))
        (should-not (contexture-files--list-done list))
        ;; Not before Emacs is idle.
        (should (= 1 (contexture-remote-tests--exchanges (contexture-files--told list))))
        (should (equal (sort (copy-sequence (contexture-files--list-names list)) #'string<)
                       '(".gitignore" "src/m.py" "tests/t.py"))))
      (should (equal (contexture-mention-in-string "see @tests/t.py and @no.py")
                     `((4 15 file ,(concat root "tests/t.py")) (20 26 symbol "no.py"))))
      ;; The end of a name will do, in letters of any size.
      (dolist (name '("t.py" "T.py" "Tests/T.PY"))
        (should (equal (plist-get (plist-get (cdr (contexture-mention--meaning
                                                   (list 'symbol name) nil))
                                             :metadata)
                                  :filename)
                       (concat root "tests/t.py"))))
      (pcase (contexture-mention--meaning (list 'file (concat root "tests/t.py")) nil)
        (`(add-item . ,params)
         (should (equal (plist-get params :content) "def t():\n    m()\n")))))))

(ert-deftest contexture-remote-errors-and-definitions-name-files-there ()
  (contexture-remote-tests--with-project
    (require 'compile)
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (contexture-test-visiting (concat root "tests/t.py")
        (contexture-test-message "^Added n (src/m.py:4-5)" (contexture-add-symbol "n"))
        (with-temp-buffer
          (setq default-directory root)
          (insert "src/m.py:2:1: error: bad\n/ssh:evil@host:/x.py:3:1: error: worse\n")
          (compilation-mode)
          (goto-char (point-min))
          (cl-letf (((symbol-function 'tramp-maybe-open-connection)
                     (lambda (vec &rest _)
                       (should (equal (tramp-file-name-host vec) "there")))))
            (contexture-test-message "^Added the error at src/m.py:2" (contexture-add-compilation))
            (forward-line)
            (contexture--inertly (compilation--ensure-parse (point-max)))
            (should-not (car (contexture-sources--error-place (point))))))))))

(ert-deftest contexture-remote-a-cut-connection-is-not-made-again ()
  (contexture-remote-tests--with-project
    (contexture-remote-tests--repository root local)
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (contexture-test-message "^Added" (contexture-add-region 1 10))
      (contexture-test-message "^Added" (contexture-add-directory (concat root "tests")))
      (let ((items (contexture-remote-tests--contents))
            (process (tramp-get-connection-process (tramp-dissect-file-name root)))
            (vc-handled-backends nil))
        (dolist (number (split-string
                         (with-temp-buffer (insert-file-contents (concat folder "pids"))
                                           (buffer-string))))
          (call-process "kill" nil nil nil "-KILL" number))
        (llm-ert-wait-for (not (process-live-p process)))
        (insert "# typed\n")
        (contexture-remote-tests--without-connecting
          (should (equal (contexture-remote-tests--contents) items))
          (save-window-excursion
            (let ((context (contexture-current-context)))
              (save-current-buffer (contexture-list context)))
            (contexture-test-settle)
            (with-current-buffer contexture-list-buffer
              (should (string-match-p "src/m.py .*remote" (buffer-string)))
              (should (string-match-p "tests/t.py .*remote" (buffer-string)))
              (kill-buffer)))
          (contexture-test-message "^Added" (contexture-add-buffer))
          (should-error (contexture-add-directory root) :type 'user-error)
          (should-error (contexture-add-diff) :type 'user-error)
          (should-not (contexture-files--of (contexture-mention--root) nil))
          (should (stringp (contexture-mention--meaning (list 'file (concat root "tests/t.py"))
                                                        nil))))))))

(provide 'contexture-remote-tests)
;;; contexture-remote-tests.el ends here
