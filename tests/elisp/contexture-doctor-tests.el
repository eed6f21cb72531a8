;;; contexture-doctor-tests.el --- Each mistake, made for real  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-doctor)
(require 'lisp-mnt)

(defun contexture-doctor-test-run (&optional address)
  "Run the doctor, with ADDRESS, to the end, and return what it shows."
  (save-window-excursion
    (contexture-doctor address)
    (llm-ert-wait-for (null contexture-doctor--waiting))
    (buffer-substring-no-properties (point-min) (point-max))))

(defun contexture-doctor-test-says (text &rest regexps)
  "Check that TEXT matches REGEXPS, in that order."
  (let ((start 0))
    (dolist (regexp regexps)
      (if (string-match regexp text start)
          (setq start (match-end 0))
        (ert-fail (list 'not-said regexp text))))))

(defun contexture-doctor-test-script (&rest lines)
  "Write a program of the shell LINES and return its file name."
  (let ((file (apply #'contexture-test-file "program" "#!/bin/sh" lines)))
    (set-file-modes file #o700)
    file))

(defmacro contexture-doctor-test-with-program (program &rest body)
  "Run BODY with PROGRAM, a form, as the server's, and no connection."
  (declare (indent 1) (debug t))
  `(contexture-test-with-server
     (let ((contexture-server-command ,program)
           (contexture-server-args nil))
       ,@body
       (should-not contexture--probes))))

;;;; All is well

(ert-deftest contexture-doctor-finds-nothing-wrong ()
  (contexture-test-with-state
    (contexture-doctor-test-says
     (contexture-doctor-test-run)
     "set-up: everything is in order"
     "ok    Emacs" "ok    .*contexture is version" "ok    tokens are counted"
     "state will be created" "ok    It answers; it is version"
     "note  This Emacs is not connected" "note  The commands are not bound to a key")
    (should-not contexture--connection)
    (contexture-request 'ping)
    (set-file-modes (concat llm-ert-directory "state") #o700)
    (contexture-doctor-test-says
     (contexture-doctor-test-run)
     "everything is in order" "state is yours alone" "This Emacs is connected")))

(ert-deftest contexture-doctor-knows-the-version-of-the-package ()
  (should (equal contexture--version
                 (lm-version (locate-library "contexture.el")))))

(ert-deftest contexture-doctor-does-not-wait ()
  (contexture-doctor-test-with-program (contexture-doctor-test-script "exec sleep 60")
    (save-window-excursion
      (contexture-doctor)
      (should contexture-doctor--waiting)
      (should contexture--probes)
      (kill-buffer contexture-doctor-buffer))))

;;;; The program

(ert-deftest contexture-doctor-misses-the-program ()
  (contexture-doctor-test-with-program nil
    (let ((exec-path nil)
          (process-environment (cons "HOME=/no/home" process-environment))
          (contexture--directory "/no/where/at/all/elisp/"))
      (contexture-doctor-test-says
       (contexture-doctor-test-run)
       "1 problem" "fail  The server's program is not installed" "make install"
       "/no/where/at/all/target/release/contexture" ".local/bin/contexture"
       "\\[Customize"))))

(ert-deftest contexture-doctor-misses-the-named-program ()
  (contexture-doctor-test-with-program "/no/such/program"
    (contexture-doctor-test-says
     (contexture-doctor-test-run)
     "fail  The program /no/such/program does not exist" "contexture-server-command names it")))

(ert-deftest contexture-doctor-sees-that-the-program-may-not-be-run ()
  (contexture-doctor-test-with-program (contexture-test-file "program" "x")
    (contexture-doctor-test-says
     (contexture-doctor-test-run)
     "fail  .*/program is not executable" "chmod u\\+x .*/program")))

(ert-deftest contexture-doctor-knows-an-old-program ()
  (contexture-doctor-test-with-program
      (contexture-doctor-test-script "echo contexture 0.0.9")
    (contexture-doctor-test-says
     (contexture-doctor-test-run)
     "1 problem" "fail  .* is version 0.0.9, older than the package" "make install")))

(ert-deftest contexture-doctor-knows-a-new-program ()
  (contexture-doctor-test-with-program
      (contexture-doctor-test-script
       "[ $1 = --version ] && echo contexture 7.0.1 && exit"
       (format "exec %s \"$@\"" (shell-quote-argument contexture-test-binary)))
    (contexture-doctor-test-says
     (contexture-doctor-test-run)
     "1 warning" "warn  .* is version 7.0.1, newer than the package" "Update"
     "ok    It answers")))

(ert-deftest contexture-doctor-knows-another-program ()
  (contexture-doctor-test-with-program "echo"
    (contexture-doctor-test-says
     (contexture-doctor-test-run)
     "fail  .*echo is not Contexture's server; .* it printed: ")))

(ert-deftest contexture-doctor-knows-a-program-that-says-nothing ()
  (contexture-doctor-test-with-program
      (contexture-doctor-test-script "exec sleep 60")
    (let ((contexture-doctor-timeout 0.3))
      (contexture-doctor-test-says
       (contexture-doctor-test-run) "fail  .*/program does not answer"))))

(ert-deftest contexture-doctor-shows-what-the-program-finds ()
  (contexture-test-with-server
    (let ((contexture-server-args (append '("--max-items" "99999" "--unix" "/x")
                                          contexture-server-args)))
      (contexture-doctor-test-says
       (contexture-doctor-test-run)
       "What to do\n  fail  configuration: max-items must be"))))

(ert-deftest contexture-doctor-shows-that-an-argument-is-wrong ()
  (contexture-test-with-server
    (let ((contexture-server-args '("--no-such-flag")))
      (contexture-doctor-test-says
       (contexture-doctor-test-run)
       "fail  .contexture doctor. could not check: .*--no-such-flag"
       "contexture-server-args"))))

;;;; Permissions

(defun contexture-doctor-test-folder (folder)
  "Return what the doctor says of the state in FOLDER."
  (let ((contexture-server-args (list "--state" folder)))
    (contexture-doctor-test-run)))

(ert-deftest contexture-doctor-sees-that-the-sockets-are-not-private ()
  (contexture-test-with-server
    (let ((process-environment
           (cons (concat "XDG_RUNTIME_DIR=" llm-ert-directory)
                 process-environment)))
      (make-directory (concat llm-ert-directory "contexture"))
      (set-file-modes (concat llm-ert-directory "contexture") #o755)
      (contexture-doctor-test-says
       (contexture-doctor-test-run)
       "fail  the folder .*contexture must be yours and closed to other users; run chmod 700"))))

(ert-deftest contexture-doctor-sees-that-the-state-is-open-to-others ()
  (contexture-test-with-server
    (let ((folder (concat llm-ert-directory "open")))
      (make-directory folder)
      (set-file-modes folder #o777)
      (contexture-doctor-test-says
       (contexture-doctor-test-folder folder)
       "2 warnings" "warn  .*open is open to other users" "chmod 700 .*open"
       "warn  others could write to the state folder .*open; now only you can"
       "It answers"))))

(ert-deftest contexture-doctor-sees-that-the-state-is-no-folder ()
  (contexture-test-with-server
    (contexture-doctor-test-says
     (contexture-doctor-test-folder (contexture-test-file "file" "x"))
     "fail  .*/file is not a folder" "--state")))

(ert-deftest contexture-doctor-sees-that-the-state-is-closed ()
  (skip-unless (/= 0 (user-uid)))       ; to root nothing is closed
  (contexture-test-with-server
    (let ((folder (concat llm-ert-directory "closed")))
      (make-directory folder)
      (set-file-modes folder #o000)
      (unwind-protect
          (contexture-doctor-test-says
           (contexture-doctor-test-folder folder)
           "fail  You have no access to .*closed" "chmod u\\+rwx .*closed")
        (set-file-modes folder #o700)))))

(ert-deftest contexture-doctor-sees-that-the-state-is-of-another-user ()
  (skip-unless (= 0 (user-uid)))        ; only root may give things away
  (contexture-test-with-server
    (let ((folder (concat llm-ert-directory "theirs")))
      (make-directory folder)
      (call-process "chown" nil nil nil "65534" folder)
      (contexture-doctor-test-says
       (contexture-doctor-test-folder folder)
       "fail  .*theirs belongs to another user" "chown -R"))))

(ert-deftest contexture-doctor-says-that-nothing-is-kept ()
  (contexture-test-with-server
    (contexture-doctor-test-says
     (contexture-doctor-test-run) "1 warning" "warn  Nothing is saved")))

;;;; Sockets

(ert-deftest contexture-doctor-misses-a-socket ()
  (contexture-test-with-server
    (contexture-doctor-test-says
     (contexture-doctor-test-run "/no/such/socket")
     "fail  The socket /no/such/socket" "serve --unix /no/such/socket"
     "M-x contexture-disconnect")))

(ert-deftest contexture-doctor-knows-what-is-no-socket ()
  (contexture-test-with-server
    (contexture-doctor-test-says
     (contexture-doctor-test-run (contexture-test-file "file" "x"))
     "fail  .*/file is not a socket")))

(ert-deftest contexture-doctor-knows-a-socket-nobody-listens-at ()
  (contexture-test-with-server
    (let ((path (concat llm-ert-directory "s")))
      (delete-process (make-network-process :name "gone" :server t :family 'local
                                            :service path))
      (unless (file-exists-p path) (ert-skip "Emacs removes sockets here"))
      (contexture-doctor-test-says
       (contexture-doctor-test-run path)
       "fail  Cannot reach .*/s: .*refused" "server that created this socket has ended"))))

(ert-deftest contexture-doctor-knows-a-server-that-is-not-ours ()
  (contexture-test-with-server
    (let* ((path (concat llm-ert-directory "s"))
           (other (make-network-process
                   :name "other" :server t :family 'local :service path :noquery t
                   :filter (lambda (process _)
                             (process-send-string process "220 mail.example\r\n")))))
      (contexture-doctor-test-says
       (contexture-doctor-test-run path)
       "fail  The program that listens at .*/s is not Contexture's server; it said: 220 mail"
       "M-x contexture-connect")
      (delete-process other))))

(ert-deftest contexture-doctor-knows-a-port-nobody-listens-at ()
  (contexture-test-with-server
    (let* ((server (make-network-process :name "gone" :server t :service t
                                         :host "127.0.0.1" :family 'ipv4))
           (port (process-contact server :service)))
      (delete-process server)
      (contexture-doctor-test-says
       (contexture-doctor-test-run (format "127.0.0.1:%d" port))
       (format "fail  Cannot reach 127.0.0.1:%d" port) "serve --tcp"))))

(ert-deftest contexture-doctor-checks-the-server-that-is-named ()
  (contexture-test-with-state
    (contexture-request 'ping)
    (contexture-doctor-test-says
     (contexture-doctor-test-run
      (cdr (contexture--server-note (concat llm-ert-directory "state"))))
     "ok    It answers; it is version" "This is the server that you named")))

(ert-deftest contexture-doctor-names-no-process-that-a-note-does-not-tell ()
  (let ((folder (make-temp-file "contexture-note" t)))
    (unwind-protect
        (dolist (note '("" "0\n/s.sock\n" "-1\n" "12\n"))
          (write-region note nil (expand-file-name "server" folder) nil 'silent)
          (should (equal (car (contexture--server-note folder))
                         (and (equal note "12\n") 12))))
      (delete-directory folder t))))

;;;; A server that does not answer

(ert-deftest contexture-doctor-knows-a-stopped-server ()
  (contexture-test-with-state
    (contexture-request 'ping)
    (let ((contexture-doctor-timeout 2)
          (pid (contexture-ert-server-pid)))
      (contexture-ert-stop-server)
      (contexture-doctor-test-says
       (contexture-doctor-test-run)
       (format "fail  The server (process %d) is stopped" pid)
       (format "kill -CONT %d" pid) (format "kill -KILL %d" pid)
       (format "\\[Resume process %d\\]" pid))
      (with-current-buffer contexture-doctor-buffer
        (goto-char (point-min))
        (search-forward "[Resume process")
        (push-button (match-beginning 0)))
      (should (eq :pong (contexture-request 'ping)))
      (let ((contexture-doctor-timeout llm-ert-timeout))
        (contexture-doctor-test-says (contexture-doctor-test-run) "It answers")))))

(ert-deftest contexture-doctor-knows-a-stopped-server-of-another-emacs ()
  (contexture-test-with-state
    (contexture-request 'ping)
    (let ((contexture-doctor-timeout 2)
          (pid (contexture-ert-server-pid))
          (other nil))
      (contexture-ert-stop-server)
      (contexture-test-as-other-emacs other
        (contexture-doctor-test-says
         (contexture-doctor-test-run)
         (format "fail  the server (process %d) is stopped" pid)))
      (contexture-ert-continue-server))))

;;;; What is around

(ert-deftest contexture-doctor-tells-of-the-buffer-and-keys ()
  (contexture-test-with-server
    (let ((map (current-global-map)))
      (unwind-protect
          (with-temp-buffer
            (rename-buffer "main.rs")
            (use-global-map (copy-keymap map))
            (global-set-key (kbd "C-c x") 'contexture-command-map)
            (contexture-doctor-test-says
             (contexture-doctor-test-run)
             "In buffer main.rs, commands work on the context of buffer main.rs"
             "contexture-mode, which marks what is in the context, is off"
             "ok    contexture-add-dwim is on C-c x a"))
        (use-global-map map)))))

;;;; contexture-info

(defun contexture-info-test-run ()
  "Return what `contexture-info' shows when it has its answers."
  (save-window-excursion
    (contexture-info)
    (llm-ert-wait-for (not (string-prefix-p "Asking" (buffer-string))))
    (buffer-substring-no-properties (point-min) (point-max))))

(ert-deftest contexture-info-tells-what-is-connected ()
  (contexture-test-with-state
    (contexture-request 'add-context '(:manager "a" :content "one" :type :text))
    (contexture-request 'add-context '(:manager "b" :content "two" :type :text))
    (contexture-doctor-test-says
     (contexture-info-test-run)
     (format "Server +contexture %s" (regexp-quote contexture--version))
     (format "Process +%d, up " (contexture-ert-server-pid))
     "Connected +through a pipe; this Emacs started" "State +.*/state"
     "Limit +50 items; 1000 for projects, files, buffers and conversations\n"
     "Contexts +2 with 2 items, 2 tokens, covered items included\n" "1 of 50 +1 tokens  [ab]\n")))

(ert-deftest contexture-info-fits-in-80-columns ()
  (contexture-test-with-state
    (contexture-request 'ping)
    (contexture-info-test-run)
    (with-current-buffer contexture-info-buffer
      (should-not truncate-lines)       ; long paths are wrapped
      (goto-char (point-min))
      (should (looking-at-p "Server"))
      (while (re-search-forward "^Limit .*$" nil t)
        (should (< (string-width (match-string 0)) 80))))))

(ert-deftest contexture-info-tells-of-a-server-of-another-emacs ()
  (contexture-test-with-state
    (contexture-request 'ping)
    (let ((other nil))
      (contexture-test-as-other-emacs other
        (contexture-request 'ping)
        (contexture-doctor-test-says
         (contexture-info-test-run)
         "Connected +through process [0-9]+, to a server that was already running")
        (contexture-disconnect)))))

(ert-deftest contexture-info-starts-nothing ()
  (contexture-test-with-server
    (contexture-doctor-test-says
     (contexture-info-test-run) "This Emacs is not connected")
    (should-not contexture--connection)))

(ert-deftest contexture-info-says-that-the-server-is-silent ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (let ((contexture-doctor-timeout 0.2))
      (contexture-ert-stop-server)
      (contexture-doctor-test-says
       (contexture-info-test-run) "The server does not answer")
      (contexture-ert-continue-server))))

;;;; Whatever is wrong

(defun contexture-doctor-test-answer ()
  "Return what a program that listens says, and whether it is our server."
  (let ((good (format "(:id 1 :result (:name \"contexture\" :version %S :pid 1))\n"
                      contexture--version)))
    (pcase (random 8)
      (0 (cons good t))
      (1 (cons (substring good 0 (random (1- (length good)))) nil))
      (2 (cons (concat (apply #'string (cl-loop repeat (1+ (random 40)) collect (random 256)))
                       "\n")
               nil))
      (3 (cons (replace-regexp-in-string "contexture" "fixture" good) nil))
      (4 (cons (replace-regexp-in-string "[0-9.]+\" :pid" "9.9.9\" :pid" good) nil))
      (5 (cons "(:id 1 :error (:code -32600 :message \"no\"))\n" nil))
      (6 (cons (nth (random 6) '("nil\n" "5\n" "(1 . 2)\n" "(:result 5)\n" "((((\n" "\"\n")) nil))
      (_ (cons (make-string (* 1000 (1+ (random 3000))) ?x) nil)))))

(defun contexture-doctor-test-listen (path answer end)
  "Let a program at PATH say ANSWER to whoever asks; then END, or stay."
  (make-network-process
   :name "listener" :server t :family 'local :service path :noquery t :coding 'binary
   :sentinel #'ignore
   :filter (lambda (process _)
             (ignore-errors
               (process-send-string process (encode-coding-string answer 'binary))
               (when end (delete-process process))))))

(ert-deftest contexture-doctor-takes-nothing-for-the-server-that-is-not ()
  (random "listeners")
  (contexture-test-with-server
    (dotimes (n 60)
      (pcase-let* ((path (concat llm-ert-directory (format "s%d" n)))
                   (`(,answer . ,good) (contexture-doctor-test-answer))
                   (end (= 0 (random 2)))
                   (contexture-doctor-timeout (if good llm-ert-timeout 0.2))
                   (case (list answer end))
                   (listener (contexture-doctor-test-listen path answer end))
                   (contexture-doctor--address path)
                   (findings 'none))
        (contexture-doctor--check-server (lambda (found) (setq findings found)))
        (llm-ert-wait-for (listp findings))
        (delete-process listener)
        (should (equal (list case good (not good))
                       (list case
                             (and (eq 'ok (caar findings))
                                  (string-prefix-p "It answers; it is version"
                                                   (nth 1 (car findings))))
                             (and (memq (caar findings) '(fail warn)) t))))
        (should (equal (cons case nil) (cons case contexture--probes)))))))

(ert-deftest contexture-doctor-judges-every-folder ()
  (random "folders")
  (llm-ert-with-files '(("a" . ""))
    (dotimes (n 200)
      (let* ((folder (concat llm-ert-directory (format "f %d" n)))
             (kind (nth (random 5) '(none file link folder folder)))
             (modes (random #o1000))
             (theirs (and (= 0 (user-uid)) (eq kind 'folder) (= 0 (random 4)))))
        (pcase kind
          ('file (write-region "" nil folder nil 'silent))
          ('link (make-symbolic-link "nowhere" folder))
          ('folder (make-directory folder)
                   (set-file-modes folder modes)
                   (when theirs (call-process "chown" nil nil nil "65534" folder))))
        (pcase-let ((`(,level ,what ,advice) (contexture-doctor--judge-folder folder))
                    (case (list kind modes theirs)))
          (should (equal (cons case level)
                         (cons case (cond ((eq kind 'none) 'ok)
                                          ((or (memq kind '(file link)) theirs) 'fail)
                                          ((and (/= 0 (user-uid)) (/= #o700 (logand #o700 modes)))
                                           'fail)
                                          ((/= 0 (logand #o077 modes)) 'warn)
                                          (t 'ok)))))
          (should (string-search (contexture--abbreviate folder) what))
          (unless (eq level 'ok) (should advice))
          ;; What it says to run makes it good.
          (when (and advice (string-match ": \\(?:sudo \\)?\\(ch.*\\)" advice))
            (should (= 0 (call-process "sh" nil nil nil "-c" (match-string 1 advice))))
            (should-not (eq 'fail (car (contexture-doctor--judge-folder folder))))))))))

;;;; Sizes and names

(ert-deftest contexture-doctor-shortens-sizes-and-names-of-the-program ()
  (dolist (home '("/home/a" "/home/a b"))
    (with-environment-variables (("HOME" home))
      (should
       (equal (contexture-doctor--judge-itself
               0 (format "{\"findings\":[{\"ok\":true,\"text\":\"the state is kept in %s/state\"},\
{\"ok\":true,\"text\":\"all 2 backups take 3200000 bytes, beside %sbc\"},\
{\"ok\":false,\"text\":\"(%s/a b) is 0 bytes, not in %s\"}],\
\"server\":{\"ok\":true,\"text\":\"a server is running\"}}\n" home home home home))
              `((ok "the state is kept in ~/state")
                (ok ,(format "all 2 backups take 3.2 MB, beside %sbc" home))
                (fail "(~/a b) is 0 B, not in ~")))))))

;;;; A busy machine

(ert-deftest contexture-doctor-blames-no-setting-for-a-slow-answer ()
  (pcase-let ((`(,finding . ,more) (contexture-doctor--judge-itself 'silent "")))
    (should-not more)
    (let ((said (format "%S" finding)))
      (should (string-search "does not answer within" said))
      (should (string-search "less busy" said))
      (should-not (string-search "contexture-server-args" said)))))

;;; contexture-doctor-tests.el ends here
