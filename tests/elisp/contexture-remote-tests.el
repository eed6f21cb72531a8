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
    (with-temp-file "proxy" (insert "#!/bin/sh\n" command "\n"))
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

(ert-deftest contexture-remote-items-outlive-the-connection ()
  (contexture-remote-tests--with-project
    (setq contexture-add-to 'project)
    (contexture-test-visiting (concat root "src/m.py")
      (contexture-test-message "^Added" (contexture-add-region 1 10))
      (insert "# typed\n")
      (tramp-cleanup-all-connections)
      (cl-letf (((symbol-function 'tramp-maybe-open-connection)
                 (lambda (&rest _) (ert-fail "connected again"))))
        (should (equal (contexture-remote-tests--contents) '("def m():\n")))
        (contexture-copy (contexture-current-context))
        (should (string-search "def m():" (current-kill 0)))
        (contexture-test-message "^Added" (contexture-add-region 1 5))))))

(provide 'contexture-remote-tests)
;;; contexture-remote-tests.el ends here
