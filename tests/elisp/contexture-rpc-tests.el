;;; contexture-rpc-tests.el --- Tests of calls to the server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Calls that are answered, refused, interrupted, lost and repeated.

;;; Code:

(require 'contexture-test-helper)

(defun contexture-rpc-tests--add (content &optional manager)
  "Add CONTENT to MANAGER without waiting."
  (contexture-request-async 'add-context (list :manager (or manager "m")
                                               :content content :brief t)))

(defun contexture-rpc-tests--contents (&optional manager)
  "Return the texts of the items of MANAGER, the oldest first."
  (mapcar (lambda (item) (plist-get item :content))
          (contexture-test-items (or manager "m"))))

(defun contexture-rpc-tests--round-trip (content)
  "Check that CONTENT comes back as it went."
  (contexture-test-with-server
    (contexture-request 'add-context (list :manager "m" :content content :type :text))
    (should (equal (contexture-rpc-tests--contents) (list content)))))

(defun contexture-rpc-tests--emacs (&rest forms)
  "Evaluate FORMS in another Emacs and return what they print."
  (with-temp-buffer
    (let ((status (call-process
                   (expand-file-name invocation-name invocation-directory) nil
                   (list t nil) nil "-Q" "--batch" "-L" contexture--directory
                   "--eval" (prin1-to-string (cons 'progn forms)))))
      (should (equal status 0))
      (buffer-string))))

;;;; Pieces of an answer

(defun contexture-rpc-tests--piece (id kind text)
  "Return a line with TEXT, a piece of KIND of the answer to call ID."
  (car (contexture--encode
        `(:method "progress" :params (:id ,id :kind ,kind :text ,text)))))

(defun contexture-rpc-tests--read (chunks)
  "Return what a connection makes of CHUNKS that it reads.
This is (LINES . NOTED): the lines that it would handle, and those that
its watchers are told of."
  (let* ((connection (contexture--new-connection nil))
         (noted nil) (lines nil) line
         (contexture--wire-functions (list (lambda (_ line) (push line noted)))))
    (unwind-protect
        (progn
          (dolist (chunk chunks) (contexture--collect connection chunk))
          (while (setq line (contexture--take-line connection))
            (push line lines))
          (cons (nreverse lines) (nreverse noted)))
      (kill-buffer (oref connection inbox)))))

(ert-deftest contexture-rpc-joins-pieces-of-one-answer ()
  (let* ((texts '("Hel" "lo \"you\"" "\\" "\nthere" "" "\"))\n(:method" "é"))
         (wire (mapconcat (lambda (text) (contexture-rpc-tests--piece 3 :text text))
                          texts ""))
         (whole (string-trim-right (contexture-rpc-tests--piece 3 :text (apply #'concat texts)))))
    (should (equal (contexture-rpc-tests--read (list wire))
                   (cons (list whole) (split-string wire "\n" t))))
    ;; Wherever it is cut.
    (dotimes (at (length wire))
      (should (equal (car (contexture-rpc-tests--read
                           (list (substring wire 0 at) (substring wire at))))
                     (list whole))))))

(ert-deftest contexture-rpc-keeps-other-pieces-apart ()
  (let* ((lines (list (contexture-rpc-tests--piece 3 :text "a")
                      (contexture-rpc-tests--piece 4 :text "b")
                      (contexture-rpc-tests--piece 4 :reasoning "c")
                      "(:id 7 :result :pong)\n"
                      (contexture-rpc-tests--piece 4 :status "d")
                      (contexture-rpc-tests--piece 4 :status "e")
                      "(:method \"progress\" :params (:id 4 :kind :text :text \"g\" :more \"h\"))\n"
                      (contexture-rpc-tests--piece 4 :text "i")))
         (alone (mapcar #'string-trim-right lines))
         (read (contexture-rpc-tests--read lines)))
    (should (equal read (cons alone alone)))))

(ert-deftest contexture-rpc-gathers-pieces-but-nothing-else ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (let* ((connection contexture--connection)
           (process (oref connection process))
           (heard nil)
           (contexture-notification-functions
            (list (lambda (_ params) (push (plist-get params :text) heard)))))
      (dolist (text '("a" "b" "c"))
        (contexture--filter process (contexture-rpc-tests--piece 3 :text text)))
      (should (oref connection gather-timer))
      (llm-ert-wait-for heard)
      (should (equal heard '("abc")))
      ;; What is no piece is handled at once, and all that came before it.
      (contexture--filter process (contexture-rpc-tests--piece 3 :text "d"))
      (contexture--filter process (contexture-rpc-tests--piece 3 :status "e"))
      (should-not (oref connection gather-timer))
      (llm-ert-wait-for (nthcdr 2 heard))
      (should (equal heard '("e" "d" "abc"))))))

(ert-deftest contexture-rpc-leaves-no-inbox ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (let ((inbox (oref contexture--connection inbox)))
      (should (buffer-live-p inbox))
      (contexture-disconnect)
      (should-not (buffer-live-p inbox)))))

;;;; Answers

(ert-deftest contexture-rpc-answers ()
  (contexture-test-with-server
    (should (eq (contexture-request 'ping) :pong))
    (should (eq (contexture-request 'ping) :pong))))

(ert-deftest contexture-rpc-reports-the-servers-error ()
  (contexture-test-with-server
    (pcase-let ((`(contexture-error ,text ,code . ,_)
                 (should-error (contexture-request 'add-contxt)
                               :type 'contexture-error)))
      (should (string-match-p "add-context" text))
      (should (= code -32601)))))

(ert-deftest contexture-rpc-answers-asynchronous-calls-in-order ()
  (contexture-test-with-server
    (let (answers)
      (dotimes (n 20)
        (contexture-request-async
         'add-context (list :manager "m" :content (number-to-string n))
         :success (lambda (item) (push (plist-get item :content) answers))))
      (llm-ert-wait-for (= (length answers) 20))
      (should (equal (nreverse answers)
                     (mapcar #'number-to-string (number-sequence 0 19)))))))

(ert-deftest contexture-rpc-calls-the-error-handler ()
  (contexture-test-with-server
    (let (problem)
      (contexture-request-async 'no-such-thing nil
                                :success #'ignore
                                :error (lambda (it) (setq problem it)))
      (llm-ert-wait-for problem)
      (should (= (plist-get problem :code) -32601)))))

(ert-deftest contexture-rpc-shows-errors-that-nobody-handles ()
  (contexture-test-with-server
    (contexture-test-message "Contexture: .*no-such-thing"
      (contexture-request-async 'no-such-thing))))

(ert-deftest contexture-rpc-an-error-in-a-handler-harms-nothing ()
  (contexture-test-with-server
    (let ((debug-on-error nil))         ; as it is outside of ERT
      (contexture-request-async 'ping nil :success (lambda (_) (error "Oops")))
      (should (eq (contexture-request 'ping) :pong)))))

(ert-deftest contexture-rpc-says-which-answer-is-of-a-wrong-type ()
  (let ((debug-on-error nil))
    (dolist (answer '(5 (1 . 2) ((:id 1)) "x" :y [1]))
      (message "%S" answer)             ; else Emacs would count equal messages
      (contexture-ert-with-handler (lambda (method _)
                                     (pcase method
                                       ('list-sets (list 'result answer))
                                       ('ping '(result :pong))))
        (contexture-test-message "answer to list-sets is not as promised (.*)"
          (contexture-request-async
           'list-sets nil
           :success (lambda (sets) (mapc (lambda (it) (string-trim (plist-get it :name))) sets)
                      (string-trim sets) (elt sets 9)))
          (should (eq (contexture-request 'ping) :pong)))))))

(ert-deftest contexture-rpc-works-with-jsonrpc-request ()
  "An answer that leaves the filter by a throw strands nothing after it."
  (contexture-test-with-server
    (let ((connection (contexture-current-connection)) answers)
      (contexture-request 'ping)
      (dotimes (n 10)
        (contexture-request-async 'ping nil :success (lambda (_) (push n answers)))
        (should (eq (jsonrpc-request connection 'ping nil) :pong)))
      (llm-ert-wait-for (= (length answers) 10)))))

(ert-deftest contexture-rpc-hands-on-notifications ()
  (contexture-test-with-server
    (let (heard)
      (contexture-watch (lambda (&rest news) (push news heard)))
      (contexture-request 'ping)
      (contexture-rpc-tests--add "x")
      (llm-ert-wait-for heard)
      (pcase-let ((`(,method ,params) (car heard)))
        (should (eq method 'context-changed))
        (should (equal (plist-get params :manager) "m"))
        (should (equal (plist-get params :count) 1))))))

(ert-deftest contexture-rpc-shows-messages-only-when-asked ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (should-not (get-buffer "*contexture events*")))
  (let ((contexture-events-buffer-size 100000))
    (contexture-test-with-server
      (contexture-request 'ping)
      (with-current-buffer "*contexture events*"
        (should (string-match-p ":method \"ping\"" (buffer-string)))
        (should (string-match-p ":pong" (buffer-string)))))))

;;;; Texts of every kind

(ert-deftest contexture-rpc-carries-a-megabyte ()
  (contexture-rpc-tests--round-trip
   (apply #'concat (make-list 20000 "fifty characters of text, a newline at the end....\n"))))

(ert-deftest contexture-rpc-carries-every-script ()
  (contexture-rpc-tests--round-trip "häß λ 中文 😀 \u202e\u2028 e\u0301 \ufeff end"))

(ert-deftest contexture-rpc-carries-newlines-and-controls ()
  (contexture-rpc-tests--round-trip
   (concat (make-string 1000 ?\n) "\r\n\r\t\0\e\\\"\\n" (make-string 1000 ?\n))))

(ert-deftest contexture-rpc-replaces-raw-bytes-and-says-so ()
  (contexture-test-with-server
    (contexture-test-message "2 characters that are not text were replaced"
      (contexture-rpc-tests--add (concat "a" (unibyte-string 255) "b" (string #xd800))))
    (should (equal (contexture-rpc-tests--contents) '("a\ufffdb\ufffd")))))

(ert-deftest contexture-rpc-reads-a-huge-reply ()
  (contexture-test-with-server
    (let ((content (apply #'concat (make-list 50000 "a line of 20 bytes.\n"))))
      (dotimes (_ 8) (contexture-rpc-tests--add content))
      (let ((contents (contexture-rpc-tests--contents)))
        (should (= (length contents) 8))
        (should (cl-every (lambda (it) (equal it content)) contents))))))

(ert-deftest contexture-rpc-survives-garbage-from-the-server ()
  (let ((contexture-test-binary
         (list "sh" "-c" "echo 'garbage ('; echo '; comment'; echo; exec \"$0\" \"$@\""
               contexture-test-binary)))
    (contexture-test-with-server
      (contexture-test-message "not a message: garbage ("
        (should (eq (contexture-request 'ping) :pong))))))

(ert-deftest contexture-rpc-ends-a-call-whose-answer-cannot-be-read ()
  ;; The server is there and answers, but not in plain data.
  (dolist (object '("#[0 \"\"]" "#s(hash-table)" "#1=(a . #1#)" "(a"))
    (let ((contexture-test-binary
           (list "sh" "-c" (format "while read -r line; do
  id=$(printf %%s \"$line\" | sed -n 's/^(:id \\([0-9]*\\) .*/\\1/p')
  case $line in
    *'\"chat\"'*) printf '(:id %%s :result %%s)\\n' \"$id\" %s ;;
    *) printf '(:id %%s :result nil)\\n' \"$id\" ;;
  esac
done" (shell-quote-argument object)))))
      (contexture-test-with-server
        ;; Only the answer can end the call: no test waits as long as this.
        (should (string-match-p
                 "the answer of the server cannot be read"
                 (error-message-string
                  (should-error (contexture-request 'chat nil :timeout 100000)
                                :type 'contexture-error))))
        (should (zerop (hash-table-count (oref contexture--connection unanswered))))
        (should-not (contexture-request 'ping nil :timeout 100000))))))

;;;; Starting and finding

(ert-deftest contexture-rpc-loading-changes-nothing ()
  (should (equal (contexture-rpc-tests--emacs
                  '(require 'jsonrpc)
                  '(let ((timers (append timer-list timer-idle-list))
                         (hooks (list find-file-hook kill-buffer-hook
                                      post-command-hook post-self-insert-hook
                                      after-change-functions
                                      after-change-major-mode-hook
                                      completion-at-point-functions
                                      kill-emacs-hook)))
                     (dolist (file (directory-files (file-name-directory (locate-library "contexture"))
                                                    nil "\\`contexture.*\\.el\\'"))
                       (unless (string-search "gptel" file)
                         (require (intern (file-name-sans-extension file)))))
                     (prin1 (list (process-list)
                                  ;; Emacs's own timer for undo comes with the time.
                                  (null (cl-delete 'undo-auto--boundary-timer
                                                   (cl-set-difference (append timer-list timer-idle-list)
                                                                      timers)
                                                   :key #'timer--function))
                                  (equal hooks
                                         (list find-file-hook kill-buffer-hook
                                               post-command-hook
                                               post-self-insert-hook
                                               after-change-functions
                                               after-change-major-mode-hook
                                               completion-at-point-functions
                                               kill-emacs-hook))
                                  (let (bound)
                                    (mapatoms
                                     (lambda (symbol)
                                       (and (string-prefix-p "contexture"
                                                             (symbol-name symbol))
                                            (where-is-internal symbol global-map)
                                            (push symbol bound))))
                                    bound)
                                  contexture--connection))))
                 "(nil t t nil nil)")))

(ert-deftest contexture-rpc-loading-waits-with-what-is-slow-to-load ()
  "What takes long is loaded by the first call, the menu or a list."
  (should (equal (contexture-rpc-tests--emacs
                  '(require 'contexture)
                  '(prin1 (cl-remove-if-not
                           #'featurep
                           '(jsonrpc eieio project xref imenu transient json
                             compile flymake
                             contexture-connection contexture-call
                             contexture-list contexture-menu
                             contexture-mention))))
                 "nil")))

(ert-deftest contexture-rpc-watching-waits-for-the-first-call-too ()
  "So `contexture-global-mode' in an init file costs little."
  (should (equal (contexture-rpc-tests--emacs
                  '(require 'contexture)
                  '(contexture-global-mode)
                  '(prin1 (list contexture-global-mode (featurep 'jsonrpc)
                                (contexture-running-p) (process-list))))
                 "(t nil nil nil)")))

(ert-deftest contexture-rpc-says-what-to-do-without-a-server ()
  (let ((contexture-server-command nil)
        (contexture--directory "/nonexistent/")
        (contexture--connection nil)
        (exec-path nil))
    (contexture-test-user-error "M-x contexture-install-server installs it"
      (contexture-request 'ping))
    (should-not contexture--connection)))

(ert-deftest contexture-rpc-refuses-a-program-that-is-not-there ()
  (dolist (command '("/nonexistent/contexture" ("no-such-program-here" "-x")))
    (let ((contexture-server-command command)
          (contexture--connection nil))
      (contexture-test-user-error "There is no program .*contexture-server-command"
        (contexture-request 'ping))
      (should-not contexture--connection))))

;; What was forked for it would die at once, and writing to it end a batch Emacs.
(ert-deftest contexture-rpc-forks-nothing-for-a-program-that-went-away ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (let ((connection contexture--connection))
      (dolist (program '("/nonexistent/contexture" "no-such-program-here"))
        (oset connection target (list program))
        (should-error (contexture--open (oref connection target)) :type 'file-missing))
      (contexture-ert-kill-server t)
      (contexture-request-async 'ping)
      (llm-ert-wait-for (string-search "No such program" (or (oref connection reason) "")))
      (should-not (oref connection process)))))

(ert-deftest contexture-rpc-finds-the-server-built-beside-it ()
  (let* ((root (make-temp-file "contexture" t))
         (contexture--directory (concat root "/elisp/"))
         (contexture-server-command nil)
         (contexture-server-args '("--ephemeral"))
         (binary (concat root "/target/debug/contexture")))
    (unwind-protect
        (progn
          (make-directory (file-name-directory binary) t)
          (copy-file "/bin/true" binary)
          (should (equal (contexture--server-command)
                         (list binary "serve" "--stdio" "--ephemeral"))))
      (delete-directory root t))))

(ert-deftest contexture-rpc-tells-why-the-server-does-not-start ()
  (let ((contexture-test-binary
         '("sh" "-c" "echo 'the disk is on fire' >&2; exit 3")))
    (contexture-test-with-server
      (let ((contexture-reconnect-delay 60)) ; it stays down
        (contexture-test-message "cannot reach the server (the disk is on fire); 1 call kept"
          (contexture-request-async 'ping nil :error #'ignore)
          (llm-ert-wait-for (oref contexture--connection reason)))
        (should (string-match-p
                 "cannot reach the server: the disk is on fire"
                 (cadr (should-error (contexture-request 'ping nil :timeout 0.05)
                                     :type 'contexture-error))))))))

(ert-deftest contexture-rpc-tells-once ()
  (let ((contexture-test-binary '("sh" "-c" "exit 3")))
    (contexture-test-with-server
      (let ((start (with-current-buffer (messages-buffer) (point-max-marker))))
        (contexture-request-async 'ping nil :error #'ignore)
        (llm-ert-wait-for (> (oref contexture--connection failures) 4))
        (with-current-buffer (messages-buffer)
          (should (= 1 (count-matches "cannot reach the server" start (point-max)))))))))

(ert-deftest contexture-rpc-waits-longer-after-each-failure ()
  (let ((contexture-reconnect-delay 0.25)
        (contexture-reconnect-max-delay 30))
    (should (equal (mapcar #'contexture--retry-delay '(0 1 2 3 7 8 9999))
                   '(0.25 0.25 0.5 1.0 16.0 30 30)))))

;;;; A server that dies

(ert-deftest contexture-rpc-loses-and-doubles-nothing-when-the-server-is-killed ()
  (contexture-test-with-state
    (contexture-request 'configure-manager '(:manager "m" :max-items 1000))
    (let ((sent (mapcar #'number-to-string (number-sequence 0 199))))
      (dolist (content sent)
        (contexture-rpc-tests--add content)
        (when (member content '("50" "120"))
          (contexture-ert-kill-server t)))
      (llm-ert-wait-for
          (zerop (hash-table-count (oref contexture--connection unanswered))))
      (should (equal (contexture-rpc-tests--contents) sent)))))

(ert-deftest contexture-rpc-keeps-calls-made-while-the-server-is-down ()
  (contexture-test-with-state
    (contexture-request 'ping)
    (contexture-test-message "the server is back; 3 waiting calls sent"
      (contexture-test-message "the server went away .*; 1 call kept"
        (contexture-ert-kill-server t)
        (contexture-rpc-tests--add "a"))
      (contexture-rpc-tests--add "b")
      (contexture-rpc-tests--add "c"))
    (should (equal (contexture-rpc-tests--contents) '("a" "b" "c")))))

(ert-deftest contexture-rpc-starts-an-idle-server-again ()
  (contexture-test-with-state
    (contexture-request 'add-context '(:manager "m" :content "kept"))
    (contexture-ert-kill-server t)
    (llm-ert-wait-for (eq (oref contexture--connection state) 'down))
    (should-not (oref contexture--connection retry-timer))
    (should (equal (contexture-rpc-tests--contents) '("kept")))))

(ert-deftest contexture-rpc-tells-of-a-lost-server-that-nobody-needs ()
  (contexture-test-with-state
    (let* ((lost 0)
           (contexture-disconnected-hook (list (lambda () (cl-incf lost)))))
      (contexture-request 'ping)
      (contexture-ert-kill-server t)
      (llm-ert-wait-for (= lost 1))
      ;; One that is needed is made again at once, and not told.
      (contexture-request 'ping)
      (contexture-ert-kill-server t)
      (contexture-rpc-tests--add "a")
      (should (equal (contexture-rpc-tests--contents) '("a")))
      (contexture-test-settle)
      (should (= lost 1)))))

(ert-deftest contexture-rpc-survives-many-kills ()
  (contexture-test-with-state
    (let ((contexture-resend-limit 100) ; A slow server may die during a call each time.
          sent)
      (dotimes (n 10)
        (let ((content (number-to-string n)))
          (push content sent)
          (contexture-request 'ping)
          (contexture-rpc-tests--add content)
          (contexture-ert-kill-server t)))
      (should (equal (contexture-rpc-tests--contents) (nreverse sent))))))

(ert-deftest contexture-rpc-gives-up-a-call-that-kills-the-server ()
  (let ((contexture-resend-limit 2)
        (contexture-test-binary
         (list "sh" "-c" "while read -r line; do case $line in
*initialize*) echo '(:id '$(echo \"$line\" | sed 's/(:id \\([0-9]*\\).*/\\1/')' :result nil)';;
*deadly*) exit 9;;
*) echo '(:id '$(echo \"$line\" | sed 's/(:id \\([0-9]*\\).*/\\1/')' :result :fine)';;
esac; done")))
    (contexture-test-with-server
      (let (problem answer)
        (contexture-request-async 'deadly nil :error (lambda (it) (setq problem it)))
        (contexture-request-async 'harmless nil :success (lambda (it) (setq answer it)))
        (llm-ert-wait-for (and problem answer))
        (should (string-match-p "died 2 times.*deadly"
                                (plist-get problem :message)))
        (should (eq answer :fine))))))

(ert-deftest contexture-rpc-subscribes-again ()
  (contexture-test-with-state
    (let (heard)
      (contexture-watch (lambda (&rest news) (push news heard)))
      (contexture-request 'ping)
      (contexture-ert-kill-server t)
      (llm-ert-wait-for (and (not (contexture-running-p)) t))
      (llm-ert-wait-for (contexture-running-p))
      (contexture-request 'ping)
      (contexture-rpc-tests--add "x")
      (llm-ert-wait-for heard))))

;;;; A server that does not read

(defconst contexture-rpc-tests--pause 0.25
  "Seconds that Emacs may compute at a time, collecting garbage aside.
The promise is 0.1; a machine that does other things meanwhile needs
more.  A send that waits for the server would never end, since the
server goes on only after it.")

(defmacro contexture-rpc-tests--duration (&rest body)
  "Return the seconds that BODY computes, without collections of garbage."
  (declare (indent 0) (debug t))
  `(let ((start (contexture-test-busy-seconds)) (garbage gc-elapsed))
     ,@body
     (- (contexture-test-busy-seconds) start (- gc-elapsed garbage))))

(defun contexture-rpc-tests--longest-pause (seconds)
  "Return the longest pause of Emacs in the next SECONDS, itself in seconds."
  (let ((end (+ (float-time) seconds)) (longest 0))
    (while (< (float-time) end)
      (setq longest (max longest (contexture-rpc-tests--duration
                                   (accept-process-output nil 0.005)))))
    longest))

(ert-deftest contexture-rpc-never-waits-for-a-stopped-server ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (let ((megabyte (make-string 1000000 ?x)))
      (contexture-ert-with-stopped-server
        (dotimes (_ 5)
          (should (< (contexture-rpc-tests--duration
                       (contexture-rpc-tests--add megabyte))
                     contexture-rpc-tests--pause)))
        (should (< (contexture-rpc-tests--longest-pause 0.5)
                   contexture-rpc-tests--pause)))
      (should (equal (contexture-rpc-tests--contents) (make-list 5 megabyte))))))

;; Every command that needs an answer waits in one place.
(ert-deftest contexture-rpc-gives-way-to-a-key ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (contexture-ert-with-stopped-server
      (cl-letf (((symbol-function 'input-pending-p) (lambda (&rest _) t)))
        (dolist (command '(contexture-preview contexture-copy contexture-insert
                           contexture-save-set contexture-switch contexture-set-limit
                           contexture-remove contexture-keep-copy))
          (with-temp-buffer
            (should (string-match-p
                     "a key ended the wait"
                     (error-message-string
                      (should-error (call-interactively command)))))))))))

(ert-deftest contexture-rpc-never-waits-for-a-full-pipe ()
  "As above, but the process that Emacs knows runs and does not read."
  (let* ((held (make-temp-file "contexture-held"))
         (contexture-test-binary
          (list "sh" "-c" (format "read -r line; echo '(:id 2 :result nil)'
while test -e %s; do sleep 0.05; done; exec \"$0\" \"$@\"" (shell-quote-argument held))
                contexture-test-binary)))
    (unwind-protect
        (contexture-test-with-server
          (contexture-rpc-tests--add "first")
          (llm-ert-wait-for (contexture-running-p))
          (let ((megabyte (make-string 1000000 ?x)))
            (should (< (contexture-rpc-tests--duration
                         (contexture-rpc-tests--add megabyte))
                       contexture-rpc-tests--pause))
            (should (oref contexture--connection full))
            (should (< (contexture-rpc-tests--longest-pause 0.4)
                       contexture-rpc-tests--pause))
            (delete-file held)
            (should (equal (contexture-rpc-tests--contents) (list "first" megabyte)))))
      (delete-file held))))

(ert-deftest contexture-rpc-ignores-late-answers ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (contexture-ert-with-stopped-server
      (should-error (contexture-request 'ping nil :timeout 0.05)
                    :type 'contexture-error))
    (should (eq (contexture-request 'ping) :pong))
    (should (zerop (hash-table-count (oref contexture--connection unanswered))))))

(ert-deftest contexture-rpc-quits-a-waiting-call ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (contexture-ert-with-stopped-server
      (run-at-time 0.05 nil (lambda () (setq quit-flag t)))
      (should (eq 'quit (condition-case nil (contexture-request 'ping)
                          (quit 'quit)))))
    (should (zerop (hash-table-count (oref contexture--connection unanswered))))
    (should (eq (contexture-request 'ping) :pong))))

(ert-deftest contexture-rpc-refuses-more-than-the-queue-holds ()
  (let ((contexture-queue-limit 1000))
    (contexture-test-with-server
      (contexture-request 'ping)
      (should (string-match-p
               "contexture-queue-limit"
               (cadr (should-error (contexture-rpc-tests--add (make-string 2000 ?x))
                                   :type 'contexture-error))))
      (should (eq (contexture-request 'ping) :pong)))))

;;;; Several Emacs, one server

(ert-deftest contexture-rpc-two-connections-share-one-state ()
  (contexture-test-with-state
    (let (other)
      (contexture-request 'add-context '(:manager "m" :content "mine"))
      (contexture-test-as-other-emacs other
        (contexture-request 'add-context '(:manager "m" :content "theirs")))
      (should (equal (contexture-rpc-tests--contents) '("mine" "theirs")))
      (contexture-test-as-other-emacs other (contexture-disconnect)))))

(ert-deftest contexture-rpc-another-emacs-shares-the-state ()
  (contexture-test-with-state
    (contexture-request 'add-context '(:manager "m" :content "mine"))
    (should (equal (contexture-rpc-tests--emacs
                    '(require 'contexture-rpc)
                    `(setq contexture-server-command ,contexture-test-binary
                           contexture-server-args ',contexture-server-args)
                    '(contexture-request 'add-context
                                         '(:manager "m" :content "theirs"))
                    '(princ (length (contexture-request 'get-context
                                                        '(:manager "m")))))
                   "2"))
    (should (equal (contexture-rpc-tests--contents) '("mine" "theirs")))))

(ert-deftest contexture-rpc-takes-over-when-the-first-emacs-ends ()
  (contexture-test-with-state
    (let (other)
      (contexture-request 'add-context '(:manager "m" :content "first"))
      (contexture-test-as-other-emacs other (contexture-request 'ping))
      (contexture-disconnect)
      (contexture-test-as-other-emacs other
        (contexture-request 'add-context '(:manager "m" :content "second"))
        (should (equal (contexture-rpc-tests--contents) '("first" "second")))
        (contexture-disconnect)))))

(defun contexture-rpc-tests--serve (&rest args)
  "Start a server with ARGS and return its process."
  (make-process :name "served" :command `(,contexture-test-binary "serve" ,@args)
                :connection-type 'pipe :noquery t
                :buffer (generate-new-buffer "served")))

(ert-deftest contexture-rpc-joins-a-unix-socket ()
  (contexture-test-with-server
    (let* ((path (concat llm-ert-directory "socket"))
           (server (contexture-rpc-tests--serve "--ephemeral" "--unix" path)))
      (unwind-protect
          (progn
            ;; The file is there a moment before anybody listens.
            (llm-ert-wait-for (condition-case nil
                                         (progn (contexture-connect path) t)
                                       (user-error nil)))
            (contexture-rpc-tests--add (make-string 1000000 ?λ))
            (should (equal (contexture-rpc-tests--contents)
                           (list (make-string 1000000 ?λ)))))
        (contexture-disconnect)
        (delete-process server)))))

(ert-deftest contexture-rpc-joins-a-tcp-port ()
  (contexture-test-with-server
    (let ((server (contexture-rpc-tests--serve "--ephemeral" "--tcp" "127.0.0.1:0")))
      (unwind-protect
          (let ((port (llm-ert-wait-for
                          (with-current-buffer (process-buffer server)
                            (goto-char (point-min))
                            (and (re-search-forward "^\\([0-9]+\\)\n" nil t)
                                 (match-string 1))))))
            (contexture-connect (concat "127.0.0.1:" port))
            (contexture-rpc-tests--add "x")
            (should (equal (contexture-rpc-tests--contents) '("x"))))
        (contexture-disconnect)
        (delete-process server)))))

(ert-deftest contexture-rpc-says-that-nobody-listens ()
  (contexture-test-with-server
    (contexture-test-user-error "Cannot reach .*nowhere"
      (contexture-connect (concat llm-ert-directory "nowhere")))
    (should-not contexture--connection)))

(ert-deftest contexture-rpc-offers-the-server-that-runs ()
  (contexture-test-with-server
    (let ((process-environment (cons (concat "XDG_STATE_HOME=" llm-ert-directory)
                                     process-environment)))
      (should-not (contexture--running-socket))
      (contexture-test-file "contexture/server" "123" "")
      (should-not (contexture--running-socket))
      (contexture-test-file "contexture/server" "123" "/run/x.sock")
      (should (equal (contexture--running-socket) "/run/x.sock")))))

(ert-deftest contexture-rpc-understands-addresses ()
  (should (equal (contexture--parse-address "host:12") '(:tcp "host" 12)))
  (should (equal (contexture--parse-address "[::1]:12") '(:tcp "::1" 12)))
  (should (equal (contexture--parse-address "/run/x:1") '(:unix "/run/x:1")))
  (should (equal (contexture--parse-address "/run/socket") '(:unix "/run/socket"))))

(ert-deftest contexture-rpc-tells-the-secret-to-other-machines-only ()
  (let ((contexture-secret-file (make-temp-file "secret" nil nil "hidden\nrest\n")))
    (unwind-protect
        (progn
          (should (equal (contexture--secret '(:tcp "example.org" 1)) "hidden"))
          (should-not (contexture--secret '(:tcp "127.0.0.1" 1)))
          (should-not (contexture--secret '(:unix "/x")))
          (should-not (contexture--secret '("program"))))
      (delete-file contexture-secret-file))))

(ert-deftest contexture-rpc-disconnecting-leaves-nothing ()
  (let ((processes (process-list))
        (timers (copy-sequence timer-list)))
    (contexture-test-with-server
      (contexture-request 'ping)
      (contexture-disconnect)
      (should-not contexture--connection)
      (should (equal (process-list) processes))
      (should-not (cl-set-difference
                   (cl-remove 'run-hooks timer-list :key #'timer--function)
                   timers)))))

(ert-deftest contexture-takes-back-that-it-waits-when-the-answer-comes ()
  (dolist (case `((,contexture--waiting . (nil)) ("Something else" . none)))
    (let ((said 'none))
      (cl-letf (((symbol-function 'current-message) (lambda () (car case)))
                ((symbol-function 'message) (lambda (&rest text) (setq said text))))
        (contexture--tell-no-longer))
      (should (equal said (cdr case))))))

(provide 'contexture-rpc-tests)
;;; contexture-rpc-tests.el ends here
