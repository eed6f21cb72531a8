;;; llm-ert-cassette-tests.el --- Tests of recorded servers  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Models and servers of the kit stand for the real ones.

;;; Code:

(require 'llm-ert)
(require 'jsonrpc)
(load (expand-file-name "llm-ert-tests" (file-name-directory (or load-file-name
                                                                 buffer-file-name)))
      nil t)

(defconst llm-ert-cassette-tests--key "sk-abcdefghijklmnopqrstuvwx0123"
  "A key that must be in no cassette.")

(defun llm-ert-cassette-tests--text (file)
  "Return what FILE has."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix)) (insert-file-contents file))
    (buffer-string)))

(defun llm-ert-cassette-tests--chat (text &rest more)
  "Return the answer to TEXT, streamed, with MORE in the request."
  (llm-ert-tests--ask
   "/v1/chat/completions?key=verysecret1"
   (append (list :stream t :model "m" :messages (vector (list :role "user" :content text)))
           more)
   (list (concat "Authorization: Bearer " llm-ert-cassette-tests--key)
         "Content-Type: application/json" "User-Agent: Emacs/99" "X-Date: today")))

(defmacro llm-ert-cassette-tests--twice (answers &rest body)
  "Run BODY while \"x.cassette\" is recorded of a model with ANSWERS, and again.
Return the two values of BODY."
  (declare (indent 1) (debug t))
  `(let (recorded)
     (llm-ert-with-model ,answers
       (let ((llm-ert-record t) (url (llm-ert-url)))
         (setq recorded (llm-ert-with-cassette "x.cassette" :to url ,@body))))
     (let ((llm-ert-record nil))
       (list recorded (llm-ert-with-cassette "x.cassette" :to "https://api.example" ,@body)))))

(ert-deftest llm-ert-cassettes-play-what-they-recorded ()
  (llm-ert-with-files nil
    (pcase-let ((`(,recorded ,played)
                 (llm-ert-cassette-tests--twice '(("Be" "cause 😀."))
                   (nth 1 (llm-ert-cassette-tests--chat "Why λ?")))))
      (should (string-search "cause 😀." recorded))
      (should (equal recorded played)))
    (let ((text (llm-ert-cassette-tests--text "x.cassette")))
      (should (string-search "> POST /v1/chat/completions?key=[hidden]\n\
> authorization: [hidden]\n> content-type: application/json\n>\n> {\n" text))
      (should (string-search "\"content\": \"Why λ?\"" text))
      (should (string-search "< 200\n< content-type: text/event-stream\n<< \"data: " text))
      (dolist (private (list llm-ert-cassette-tests--key "verysecret1" "Emacs/99" "today"))
        (should-not (string-search private text)))
      ;; Each event is a piece.
      (should (= 4 (cl-count-if (lambda (line) (string-prefix-p "<< " line))
                                (split-string text "\n")))))))

(ert-deftest llm-ert-cassettes-have-an-answer-once ()
  (llm-ert-with-files nil
    (dolist (path '("/v1/messages" "/v1/chat/completions"))
      (dolist (answer (llm-ert-cassette-tests--twice '("Because.")
                        (nth 1 (llm-ert-tests--ask path '(:messages [])))))
        (should (= 2 (length (split-string answer "Because"))))))))

(ert-deftest llm-ert-cassettes-keep-the-pieces-even-of-characters ()
  (llm-ert-with-files nil
    (let (chunks)
      (llm-ert-cassette-tests--twice '((torn "éééééé漢漢漢😀😀😀"))
        (let ((client (llm-ert-tests--send "/v1/messages" '(:messages [] :stream t))))
          (push (nth 1 (llm-ert-tests--got client)) chunks)))
      (should (equal (car chunks) (cadr chunks)))
      (should (string-match-p "^<< \".*\\\\3[0-7][0-7]\"$"
                              (llm-ert-cassette-tests--text "x.cassette"))))))

(ert-deftest llm-ert-cassettes-number-ids-and-stop-time ()
  (llm-ert-with-files nil
    (let ((id "call_9f8e7d6c5b4a3921") answer)
      (llm-ert-with-model (list `((call "now" (:at "2026-05-04T03:02:01Z") ,id)) "Done.")
        (let ((llm-ert-record t) (url (llm-ert-url)))
          (llm-ert-with-cassette "x.cassette"
            :to url
            (llm-ert-tests--ask "/v1/messages" '(:messages []))
            (llm-ert-tests--ask
             "/v1/messages" `(:messages [(:role "user"
                                          :content [(:type "tool_result" :tool_use_id ,id
                                                     :content "x")])])))))
      (let ((text (llm-ert-cassette-tests--text "x.cassette"))
            (llm-ert-record nil))
        (should-not (string-search id text))
        (should (string-search "2000-01-01T00:00:00Z" text))
        (should (= 2 (cl-count-if (lambda (line) (string-search "call_id-1" line))
                                  (split-string text "\n"))))
        (llm-ert-with-cassette "x.cassette"
          :to "https://api.example"
          (setq answer (nth 1 (llm-ert-tests--ask "/v1/messages" '(:messages []))))
          (should (string-search "call_id-1" answer))
          (llm-ert-tests--ask
           "/v1/messages" `(:messages [(:role "user"
                                        :content [(:type "tool_result"
                                                   :tool_use_id "call_id-1"
                                                   :content "x")])])))))))

(ert-deftest llm-ert-cassettes-hide-what-the-environment-calls-a-secret ()
  (llm-ert-with-files nil
    (let ((process-environment (cons "MY_API_KEY=plainlooking" process-environment)))
      (llm-ert-cassette-tests--twice '("The key is plainlooking, isn't it?")
        (llm-ert-tests--ask "/v1/messages" '(:messages [] :note "plainlooking"))))
    (should-not (string-search "plainlooking" (llm-ert-cassette-tests--text "x.cassette")))))

(ert-deftest llm-ert-cassettes-show-a-difference-as-diff-does ()
  (llm-ert-with-files nil
    (let ((turn (lambda (text) (llm-ert-cassette-tests--chat text :temperature 0.5))))
      (llm-ert-cassette-tests--twice '("Because.") (funcall turn "Why?"))
      (let ((said (replace-regexp-in-string
                   "\\\\n" "\n"
                   (llm-ert-tests--failure
                     (llm-ert-with-cassette "x.cassette"
                       :to "https://api.example"
                       (should (= 500 (car (funcall turn "How?")))))))))
        (should (string-match-p "x.cassette:1: recorded (-), but the client sent (\\+):" said))
        (should (string-match-p "^-.*Why\\?" said))
        (should (string-match-p "^\\+.*How\\?" said))
        (should (string-match-p "^ .*role" said))
        (should-not (string-search "POST" said)))
      ;; A wait for what the client makes of the answer ends at once.
      (let ((llm-ert-timeout 600))
        (llm-ert-tests--should-fail "but the client sent"
          (llm-ert-with-cassette "x.cassette"
            :to "https://api.example"
            (funcall turn "How?")
            (llm-ert-wait-for nil))))
      (llm-ert-tests--should-fail "never asked"
        (llm-ert-with-cassette "x.cassette" :to "https://api.example"))
      (llm-ert-tests--should-fail "nothing is left"
        (llm-ert-with-cassette "x.cassette"
          :to "https://api.example"
          (funcall turn "Why?")
          (funcall turn "Why?"))))))

(ert-deftest llm-ert-a-difference-is-as-short-as-can-be ()
  (should (equal (llm-ert--diff "a\nb\nc" "a\nx\nc") " a\n-b\n+x\n c"))
  (should (equal (llm-ert--diff "a" "a\nb") " a\n+b"))
  (should (equal (llm-ert--diff "1\n2\n3\n4\n5\n6\n7\n8\n9" "1\n2\n3\n4\n5\n6\n7\n8\n0")
                 " 6\n 7\n 8\n-9\n+0"))
  (should (equal (llm-ert--diff "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nz" "x\n1\n2\n3\n4\n5\n6\n7\n8\n9\ny")
                 "-0\n+x\n 1\n 2\n 3\n...\n 7\n 8\n 9\n-z\n+y")))

(ert-deftest llm-ert-cassettes-refuse-the-network ()
  (llm-ert-with-files nil
    (llm-ert-cassette-tests--twice '("Because.") (llm-ert-cassette-tests--chat "Why?"))
    (dolist (way (list (lambda ()
                         (should-error
                          (open-network-stream "x" nil "api.example" 443 :type 'plain)))
                       (lambda ()
                         (ignore-errors
                           (url-retrieve-synchronously "http://api.example/v1" t t 5)))))
      (llm-ert-tests--should-fail "went to the network, to"
        (llm-ert-with-cassette "x.cassette"
          :to "https://api.example"
          (llm-ert-cassette-tests--chat "Why?")
          (funcall way))))
    (skip-unless (executable-find "curl"))
    (llm-ert-with-cassette "x.cassette"
      :to "https://api.example"
      (llm-ert-cassette-tests--chat "Why?")
      (should-not (eql 0 (call-process "curl" nil nil nil "-s" "https://api.example/v1"))))))

(ert-deftest llm-ert-cassettes-have-nothing-but-strings ()
  (llm-ert-with-files `(("deep" . ,(concat "> GET /\n< 200\n<< " (make-string 2000000 ?\() "\n"))
                        ("data" . "> GET /\n< 200\n<< #(\"a\" 0 1 (display \"b\"))\n"))
    (dolist (file '("deep" "data"))
      (should (string-search "must be a string"
                             (cadr (should-error (llm-ert-with-cassette file
                                                   :to "https://example.com"
                                                   (ignore)))))))))

(ert-deftest llm-ert-cassettes-keep-comments-and-say-how-to-make-them ()
  (llm-ert-with-files '(("x.cassette" . ";; About this.\n"))
    (dotimes (_ 2)
      (llm-ert-cassette-tests--twice '("Because.") (llm-ert-cassette-tests--chat "Why?")))
    (should (string-prefix-p ";; About this.\n>"
                             (llm-ert-cassette-tests--text "x.cassette")))
    (let ((llm-ert-record nil))
      (should (string-search "LLM_ERT_RECORD=1"
                             (cadr (should-error
                                    (llm-ert-with-cassette "none" :to "https://x"))))))))

;;;; JSON-RPC

(defun llm-ert-cassette-tests--serve (method params)
  "Answer METHOD with PARAMS as a language server might."
  (pcase method
    ('initialize `((notify window/logMessage (:message "hello"))
                   (result (:capabilities (:hoverProvider t)
                            :root ,(plist-get params :rootPath)))))
    ('hover '(result (:contents [])))
    ('configure '((request workspace/configuration (:items [])) (result nil)))))

(defun llm-ert-cassette-tests--talk (extra)
  "Talk to the peer as a client; EXTRA is a parameter."
  (let* (told
         (client (make-instance
                  'jsonrpc-process-connection :name "client"
                  :request-dispatcher (lambda (&rest _) ["tabs"])
                  :notification-dispatcher
                  (lambda (_ _ params) (setq told (plist-get params :message)))
                  :process (lambda ()
                             (make-network-process
                              :name "client" :host "127.0.0.1" :noquery t
                              :service (llm-ert-port)))))
         (answers (list (jsonrpc-request client 'initialize
                                         (list :processId (emacs-pid)
                                               :rootPath (directory-file-name
                                                          llm-ert-directory)
                                               :clientInfo (list :version emacs-version)))
                        (progn (llm-ert-wait-for told) told)
                        (jsonrpc-request client 'hover (list :at extra))
                        (jsonrpc-request client 'configure nil))))
    (llm-ert-await '(:result ("tabs")) 'sent)
    answers))

(ert-deftest llm-ert-cassettes-play-jsonrpc ()
  (let (answers text)
    (llm-ert-with-files nil
      (llm-ert-with-server #'llm-ert-cassette-tests--serve
        (let ((llm-ert-record t) (port (llm-ert-port)))
          (setq answers (llm-ert-with-cassette "x.cassette"
                          :to (list "127.0.0.1" port)
                          (llm-ert-cassette-tests--talk 3)))
          (should (equal (plist-get (car answers) :root)
                         (directory-file-name llm-ert-directory)))))
      (setq text (llm-ert-cassette-tests--text "x.cassette")))
    (should (string-search "\"rootPath\":\"/llm-ert\"" text))
    (should (string-search "\"processId\":0" text))
    (should-not (string-search emacs-version text))
    (let ((llm-ert-record nil))
      (llm-ert-with-files `(("x.cassette" . ,text))
        (let ((again (llm-ert-with-cassette "x.cassette"
                       :command '("none")
                       (llm-ert-cassette-tests--talk 3))))
          (should (equal (plist-get (car again) :root)
                         (directory-file-name llm-ert-directory)))
          (should (equal (cdr again) (cdr answers))))
        (let ((said (llm-ert-tests--failure
                      (llm-ert-with-cassette "x.cassette"
                        :command '("none")
                        (ignore-errors
                          (let ((debug-on-error nil)) (llm-ert-cassette-tests--talk 4)))))))
          (should (string-match-p "-.*at.*: 3" said))
          (should (string-match-p "\\+.*at.*: 4" said)))))))

(ert-deftest llm-ert-cassettes-play-programs-that-speak-in-lines ()
  (skip-unless (and (executable-find "bash") (executable-find "sed")))
  (llm-ert-with-files nil
    (let ((talk (lambda ()
                  (let* ((got "")
                         (client (make-process
                                  :name "client" :command (llm-ert-command) :noquery t
                                  :connection-type 'pipe :coding 'utf-8
                                  :filter (lambda (_ chunk) (setq got (concat got chunk))))))
                    (process-send-string
                     client "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n")
                    (llm-ert-wait-for (string-suffix-p "\n" got))
                    (llm-ert--read-json (encode-coding-string got 'utf-8)))))
          answers)
      (dolist (llm-ert-record '(t nil))
        (push (llm-ert-with-cassette "x.cassette"
                :framing 'lines
                :command '("sed" "-u" "s/\"method\":\"ping\"/\"result\":{\"λ\":[]}/")
                (funcall talk))
              answers))
      (should (equal (car answers) '(:jsonrpc "2.0" :id 7 :result (:λ nil))))
      (should (equal (car answers) (cadr answers))))))

(ert-deftest llm-ert-record-again-records ()
  (llm-ert-with-files nil
    (llm-ert-with-model '("One." "Two.")
      (let* ((url (llm-ert-url)) (llm-ert-record t) (inhibit-message t)
             (folder llm-ert-directory)
             (test (make-ert-test
                    :name 'again
                    :body (lambda ()
                            (llm-ert-with-cassette (concat folder "x.cassette")
                              :to url
                              (llm-ert-cassette-tests--chat "Count."))))))
        (funcall (ert-test-body test))
        (should (string-search "One." (llm-ert-cassette-tests--text "x.cassette")))
        (setq llm-ert-record nil)
        (let ((ert-quiet t)) (llm-ert-record-again test))
        (should (string-search "Two." (llm-ert-cassette-tests--text "x.cassette")))))))

(provide 'llm-ert-cassette-tests)
;;; llm-ert-cassette-tests.el ends here
